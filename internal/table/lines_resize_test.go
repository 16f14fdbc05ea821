//go:build !modelcheck

package table_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
)

// numbered is a set of parts whose keys are numbers, and their hashes the same.
type numbered struct{ *parts }

func newNumbered() numbered { return numbered{newParts(atoi)} }

func (p numbered) put(i int) { p.add(p.new(strconv.Itoa(i), i)) }
func (p numbered) take(i int) {
	p.remove(p.load(strconv.Itoa(i)))
}

// touch replaces the cell of a number, which makes the set neither grow nor shrink.
func (p numbered) touch(i int) {
	e := p.new(strconv.Itoa(i), i)
	p.Swap(p.key(e.key), e)
}

// step is what a call has done to the arrays of a set.
type step struct {
	p                      *parts
	chains, gone, segments int
}

func before(p *parts) step { return step{p, p.Chains(), p.Gone(), p.Segments()} }

// moved returns how many chains have moved since, if no more than one resize has
// ended.
func (s step) moved() int {
	if s.p.Chains() != s.chains {
		return s.chains - s.gone + s.p.Gone()
	}
	return s.p.Gone() - s.gone
}

// No call moves more than a portion of the chains and its own, or makes more
// segments than these need; and a resize ends after as many calls as there are
// portions. So it is while the set grows and while it shrinks.
func TestLinesMoveFew(t *testing.T) {
	p := newNumbered()
	const n, large = 70_000, 512
	grows, shrinks := p.Portion()
	if grows != 64 || shrinks != 256 {
		t.Errorf("portions of %d and %d, want 64 and 256", grows, shrinks)
	}
	resizes := 0
	try := func(portion int, call func()) {
		calls, chains := 0, p.Chains()
		for again := true; again; {
			s := before(p.parts)
			call()
			if s.chains < large {
				return
			}
			if m := s.moved(); m > portion+1 {
				t.Fatalf("a call with %d cells moves %d of %d chains", p.Len(), m, s.chains)
			}
			if m := p.Segments() - s.segments; m > 4 {
				t.Fatalf("a call with %d cells makes %d segments", p.Len(), m)
			}
			calls++
			again = p.Resizing()
		}
		if calls > 1 {
			resizes++
		}
		if most := chains/portion + 1; calls > most {
			t.Fatalf("with %d cells it takes %d calls to move %d chains, want %d", p.Len(), calls, chains, most)
		}
	}
	for i := 0; i < n; {
		try(grows, func() { p.put(i); i++ })
	}
	if grown, shrunk := p.Resizes(); grown != 12 || shrunk != 0 {
		t.Errorf("it grew %d times and shrank %d times, want 12 and 0", grown, shrunk)
	}
	for i := 0; i < n; {
		try(shrinks, func() { p.take(i); i++ })
	}
	if grown, shrunk := p.Resizes(); grown != 12 || shrunk != 12 {
		t.Errorf("it grew %d times and shrank %d times, want 12 each: from 8 chains to 32768, and back", grown, shrunk)
	}
	if resizes != 13 {
		t.Errorf("%d resizes in parts, want 13: from 512 chains to 32768, and back to 256", resizes)
	}
}

// No call allocates more than some segments, whatever the size of the set.
func TestLinesAllocateLittle(t *testing.T) {
	p := newNumbered()
	i := 0
	for ; i < 15<<11; i++ { // as many as fit into 8192 chains
		p.put(i)
	}
	if table.SegmentSize != 256<<10 {
		t.Errorf("a segment has %d bytes, want 256 KiB", table.SegmentSize)
	}
	var m runtime.MemStats
	bytes := func() uint64 { runtime.ReadMemStats(&m); return m.TotalAlloc }
	calls := 0
	for ; p.Chains() == 8<<10; calls++ {
		was := bytes()
		p.put(i)
		if now := bytes() - was; now > 3*uint64(table.SegmentSize) {
			t.Fatalf("call %d allocates %d bytes, want %d at most", calls, now, 3*table.SegmentSize)
		}
		i++
	}
	if grows, _ := p.Portion(); calls != 8<<10/grows {
		t.Errorf("it took %d calls to grow", calls)
	}
}

// A writer makes no segment for the chain that it needs: it writes to the chain
// where it is, and moves its portion all the same.
func TestLinesWritersMakeNoSegment(t *testing.T) {
	p := newNumbered()
	for i := range 15<<11 + 1 { // the last makes 8192 chains grow
		p.put(i)
	}
	grows, _ := p.Portion()
	if p.Gone() != grows || p.Segments() != 4 {
		t.Fatalf("%d chains have moved, and there are %d segments; want %d, and 4", p.Gone(), p.Segments(), grows)
	}
	p.touch(8000)
	if p.Gone() != 2*grows || p.Segments() != 4 {
		t.Errorf("%d chains have moved, and there are %d segments; want %d, and 4", p.Gone(), p.Segments(), 2*grows)
	}
}

// A set that is made with room for many has all its segments.
func TestLinesRoomForMany(t *testing.T) {
	p := numbered{&parts{hash: atoi}}
	p.Init(p.seeded, 5<<13)
	if p.Chains() != 16<<10 || p.Segments() != 4 {
		t.Fatalf("%d chains in %d segments, want 16384 in 4", p.Chains(), p.Segments())
	}
	for i := 0; i < 16<<10; i += 1000 {
		p.put(i)
	}
	for i := 0; i < 16<<10; i += 1000 {
		if e := p.load(strconv.Itoa(i)); e == nil || e.n != i {
			t.Errorf("Load(%d) = %v", i, e)
		}
	}
	if p.Chains() != 16<<10 {
		t.Errorf("%d chains, want 16384", p.Chains())
	}
}

// Checks L4, L5, L6.

// Everything is found in a set of many segments, by Load and All, and nothing
// that has left, wherever a resize is.
func TestLinesOfSegments(t *testing.T) {
	keys := table.NewKeys[string]()
	p, all := newParts(keys.Hash), map[string]*part{}
	const n = 60_000
	looks := 0
	look := func() {
		for k, e := range all {
			if p.load(k) != e {
				t.Fatalf("Load(%s) = %v, want %v", k, p.load(k), e)
			}
		}
		wantAll(t, p, all)
		looks++
	}
	for i := range n {
		e := p.new(strconv.Itoa(i), i)
		if !p.add(e) {
			t.Fatalf("%d is there already", i)
		}
		all[e.key] = e
		if p.Gone()%5000 > 4900 {
			look()
		}
	}
	look()
	for i := range n {
		k := strconv.Itoa(i)
		if !p.remove(all[k]) || p.load(k) != nil {
			t.Fatalf("%d cannot be deleted", i)
		}
		delete(all, k)
		if p.Gone()%5000 > 4700 {
			look()
		}
	}
	if look(); looks < 8 {
		t.Errorf("looked %d times", looks)
	}
}
