// Package load makes the input of the benchmarks: realistic distinct keys and
// seeded sequences of which key comes next, the same for every implementation.
package load

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
)

// URLs returns n distinct database URLs, the keys of an engine cache.
func URLs(n int) []string {
	urls := make([]string, n)
	var buf []byte
	for i := range urls {
		buf = append(buf[:0], "postgres://plans:secret@db-"...)
		buf = append(digits(buf, i%251, 3), ".eu-west.internal:5432/tenant_"...)
		urls[i] = string(digits(buf, i, 6))
	}
	return urls
}

// Names returns n distinct dotted names, the keys of a registry of actions or
// of a breaker per dependency.
func Names(n int) []string {
	verbs := [...]string{"create", "resize", "rotate", "drain", "restore", "verify", "attach", "publish"}
	names := make([]string, n)
	var buf []byte
	for i := range names {
		buf = append(buf[:0], "billing."...)
		buf = append(append(buf, verbs[i%len(verbs)]...), ".invoice-"...)
		names[i] = string(digits(buf, i, 6))
	}
	return names
}

// digits appends n with width digits at least. Every process makes the keys of
// all cases, and package fmt would take most of a quick run for that.
func digits(buf []byte, n, width int) []byte {
	for ; width > 1 && n < pow10(width-1); width-- {
		buf = append(buf, '0')
	}
	return strconv.AppendInt(buf, int64(n), 10)
}

func pow10(n int) int {
	p := 1
	for range n {
		p *= 10
	}
	return p
}

// streamLen is long enough that a stream does not repeat within what the
// caches remember, and short enough (256 KiB) to be read sequentially beside
// the structure under test.
const streamLen = 1 << 16

// Streams is a set of seeded sequences of key indices, one for each goroutine
// of a parallel benchmark. All goroutines share the numbers and start at
// different places.
type Streams struct {
	steps []step
	next  atomic.Uint32
}

type step struct {
	key   uint32
	write bool
}

// Uniform returns streams in which each of n keys is equally likely, and
// writePercent of the steps are writes.
func Uniform(n, writePercent int) *Streams {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	return build(writePercent, r, func() uint32 { return r.Uint32N(uint32(n)) })
}

// Zipf returns streams in which few of n keys are hot (exponent 1.1), and
// writePercent of the steps are writes.
func Zipf(n, writePercent int) *Streams {
	r := rand.New(rand.NewPCG(2, uint64(n)))
	z := rand.NewZipf(r, 1.1, 1, uint64(n-1))
	return build(writePercent, r, func() uint32 { return uint32(z.Uint64()) })
}

func build(writePercent int, r *rand.Rand, key func() uint32) *Streams {
	s := &Streams{steps: make([]step, streamLen)}
	for i := range s.steps {
		s.steps[i] = step{key(), r.IntN(100) < writePercent}
	}
	return s
}

// Stream returns the sequence of one more goroutine.
func (s *Streams) Stream() Stream {
	const apart = 7919 // a prime, so that starts do not line up
	return Stream{steps: s.steps, at: s.next.Add(1) * apart}
}

// Stream is one goroutine's endless sequence of steps.
type Stream struct {
	steps []step
	at    uint32
}

// Next returns the index of the next key and whether to write it.
func (s *Stream) Next() (key int, write bool) {
	s.at++
	t := &s.steps[s.at%streamLen]
	return int(t.key), t.write
}

// TouchHeap makes the heap use its first pages now, and not while something is
// measured: on a virtual machine the first use of a page can take as long as a
// hundred operations, of which short runs would be charged more to whatever
// allocates more. A service has done that when it is warm.
func TouchHeap() {
	const piece, size = 8 << 10, 8 << 20 // twice the least heap at which Go collects
	pieces := make([][]byte, size/piece) // small, so that they fill gaps that one large piece would leave
	for i := range pieces {
		pieces[i] = make([]byte, piece)
		for at := 0; at < piece; at += 4096 {
			pieces[i][at] = 1
		}
	}
	runtime.KeepAlive(pieces)
	runtime.GC()
}
