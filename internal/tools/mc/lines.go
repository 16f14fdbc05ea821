//go:build modelcheck

package mc

import "unsafe"

// lineSize is the unit in which caches exchange memory: see
// internal/atomics.CacheLineSize, which this package cannot import.
const lineSize = 64

// lines records who touches which words, in order, to tell afterwards which
// cache lines move.
type lines struct {
	words   words
	touches []touch
}

type touch struct {
	word   int32
	core   int8
	writes bool
	class  Class
}

//go:norace
func (l *lines) touch(core int, o *Op) {
	if w := l.words.number(o.On.Addr); w != 0 {
		l.touches = append(l.touches, touch{w, int8(core), o.On.Mode != Read, o.Class})
	}
}

// Touch says that the running core writes a word without a step, because no other knows the
// word yet: that brings its line into the core's cache.
//
//go:norace
func Touch(word unsafe.Pointer) {
	if m := active; m != nil && m.cur != nil && m.cfg.lines != nil {
		m.cfg.lines.touch(m.cur.id, &Op{On: Access{Addr: word, Mode: Write}})
	}
}

// onlyRead says that the last step wrote nothing after all. A table looks
// before it writes; a compare-and-swap that fails has taken the line.
//
//go:norace
func (l *lines) onlyRead() {
	if t := &l.touches[len(l.touches)-1]; t.class != RMW {
		t.writes = false
	}
}

// line is a cache line, by its object and its place therein.
//
// Where in a line of the machine an object begins is up to the allocator if it
// has at most 512 bytes. All objects are taken to begin a line, as larger ones
// do: words of one object share a line if they are in the same 64 bytes of it,
// and words of two objects share none. Objects of at most 16 bytes may be one
// to the allocator, so there every word is a line, as a global variable is.
type line struct{ object, index uintptr }

func (o objects) line(word uintptr) line {
	const tiny = 16
	in, ok := o.find(word)
	if !ok || in.size <= tiny {
		return line{word, 0}
	}
	return line{in.base, (word - in.base) / lineSize}
}

// moves returns how many lines some cache had to fetch, or to take from others.
// Each core has one cache. A directory knows for each line who may read it and
// who may write it (MSI).
func (l *lines) moves(all objects) (n int) {
	type state struct {
		sharers uint64
		dirty   bool // the one sharer may write it
	}
	at := make([]line, l.words.n+1)
	for i, p := range l.words.addr {
		if p != nil {
			at[l.words.num[i]] = all.line(uintptr(p))
		}
	}
	caches := map[line]state{}
	for _, t := range l.touches {
		s, me := caches[at[t.word]], uint64(1)<<t.core
		if t.writes && s == (state{me, true}) || !t.writes && s.sharers&me != 0 {
			continue
		}
		if n++; t.writes {
			caches[at[t.word]] = state{me, true}
		} else {
			caches[at[t.word]] = state{s.sharers | me, false}
		}
	}
	return n
}

// Transfers returns how many cache-line transfers one op causes when up to 64
// cores call it again and again on one shared value, taking turns at every
// operation on a shared word, once everything that can be cached is. It is
// worse than an average schedule and does not depend on the machine.
func Transfers[T any](cores int, setup func() T, op func(shared T, core int)) float64 {
	return contend(cores, func() func(int) {
		shared := setup()
		return func(core int) { op(shared, core) }
	}).perCall(heap())
}

// contention is what cores touch who call an operation a number of times
// each, and what they touch who call it twice as often.
type contention struct {
	calls       int
	once, twice *lines
}

func contend(cores int, setup func() (op func(core int))) contention {
	calls := max(8, 256/cores) // of each core: enough to warm up
	return contention{calls * cores, record(cores, calls, setup), record(cores, 2*calls, setup)}
}

// perCall returns how many lines a call moves once the caches are warm.
func (c contention) perCall(all objects) float64 {
	return float64(c.twice.moves(all)-c.once.moves(all)) / float64(c.calls)
}

// record returns what cores touch.
func record(cores, calls int, setup func() (op func(core int))) *lines {
	defer measure()()
	l := &lines{}
	r := Explore(Config{Mode: roundRobin, MaxSteps: 1 << 30, MaxSchedules: 1, lines: l, booked: true}, func(m *M) {
		op := setup()
		for core := range cores {
			m.Go(func() {
				for range calls {
					op(core)
				}
			})
		}
	})
	if r.Failure != "" {
		panic("mc: " + r.Failure)
	}
	return l
}

// Core returns the number of the core that runs while costs are measured.
//
//go:norace
func Core() int {
	if m := active; m != nil && m.cur != nil {
		return m.cur.id
	}
	return 0
}
