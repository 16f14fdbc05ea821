//go:build !modelcheck

package table_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// spreadParts is a Lines that counts in n parts.
type spreadParts struct {
	*parts
	words []atomic.Int64
}

func newSpread(hash func(string) uint64, n int) spreadParts {
	s := spreadParts{newParts(hash), make([]atomic.Int64, n)}
	s.Spread(n, func(hash uint64) *atomic.Int64 { return &s.words[hash>>32%uint64(n)] })
	return s
}

// uncounted returns what is in the parts.
func (s spreadParts) uncounted() (n int) {
	for i := range s.words {
		n += int(s.words[i].Load())
	}
	return n
}

// wantCounted checks that the set has n cells and has counted them, all but some
// that are in parts, and so has as many chains as it should.
func (s spreadParts) wantCounted(t *testing.T, n int) {
	t.Helper()
	found := 0
	for range s.All() {
		found++
	}
	if found != n {
		t.Fatalf("%d cells, want %d", found, n)
	}
	rest := s.uncounted()
	if got := s.Counted() + rest; got != n {
		t.Fatalf("%d cells are counted, %d of them in parts, want %d", got, rest, n)
	}
	// Who counted when the set was twice as large leaves twice as much in a part.
	if most := max(s.Chains()/2, len(s.words)); rest > most || rest < -most {
		t.Fatalf("%d cells are counted in parts, with %d chains", rest, s.Chains())
	}
	if !s.Fits() || s.Wrong() != 0 {
		t.Fatalf("%d chains for %d cells, of which %d are in wrong places", s.Chains(), n, s.Wrong())
	}
}

// What is counted in parts is the number of cells, however many parts there are, and
// the set grows and shrinks as others do.
func TestLinesCountInParts(t *testing.T) {
	for _, n := range []int{1, 2, 8, 256} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSpread(hashes()["good"], n)
			const cells = 6000
			for i := range cells {
				s.add(s.new(fmt.Sprint(i), i))
				if i%100 == 0 {
					s.wantCounted(t, i+1)
				}
			}
			for i := range cells {
				s.remove(s.load(fmt.Sprint(i)))
				if i%100 == 0 {
					s.wantCounted(t, cells-i-1)
				}
			}
			for i := range 2 * n { // takes from the parts what is left there
				e := s.new(fmt.Sprint(i), i)
				s.add(e)
				s.remove(e)
			}
			if c := s.Chains(); c > 8*n {
				t.Errorf("%d chains for no cells", c)
			}
		})
	}
}

// What a part has kept since there were more chains is counted by the next change of
// a cell in it.
func TestLinesCollectWhatPartsKept(t *testing.T) {
	const parts = 8 // as many as chains, so that no part keeps a change
	s := newSpread(hashes()["good"], parts)
	for i := range s.words {
		s.words[i].Store(1)
	}
	s.add(s.new("a", 0))
	if rest := s.uncounted(); rest != parts-1 || s.Len() != 2 {
		t.Errorf("%d cells are counted, and %d in parts, want 2 and %d", s.Len(), rest, parts-1)
	}
}

// Where there are many more chains than parts, few changes are counted in the word that all share.
func TestLinesCountInFewWords(t *testing.T) {
	s, shared := newSpread(hashes()["good"], 2), 0
	for i := range 6000 {
		before := s.Counted()
		s.add(s.new(fmt.Sprint(i), i))
		if i >= 3000 && s.Counted() != before {
			shared++
		}
	}
	if shared > 3000/50 {
		t.Errorf("%d of 3000 additions have written the word that all share", shared)
	}
}

// Many who add and remove at once count each cell once.
func TestStressLinesCountInParts(t *testing.T) {
	s := newSpread(hashes()["good"], 2)
	const goroutines, cells = 4, 1500
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range cells {
				e := s.new(fmt.Sprint(g, " ", i), i)
				s.add(e)
				if i%3 != 0 {
					s.remove(e)
				}
			}
		})
	}
	wg.Wait()
	s.wantCounted(t, goroutines*cells/3)
}
