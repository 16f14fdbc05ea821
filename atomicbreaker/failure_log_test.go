//go:build !modelcheck

package atomicbreaker

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Checks I17, I18: all tests of this file.

// The fields of a logged word are disjoint, fill what the diagram says, and are
// not those that a word has without them.
func TestLoggedWordLayout(t *testing.T) {
	full := (word(0).enter(closed) | watched).at(placeMask, manyMask, true)
	if full&payloadMask != payloadMask {
		t.Errorf("a full logged payload is %#x, want %#x", uint64(full&payloadMask), uint64(payloadMask))
	}
	for many := 0; many <= manyMask; many++ {
		for _, failed := range []bool{false, true} {
			for _, place := range []uint32{0, 1, maxLast, placeMask} {
				w := word(0).enter(closed).at(place, many, failed)
				if w.many() != many || w.place() != place || w&last != 0 != failed || w&logged == 0 || w.watched() || w.gen() != 1 || w.mode() != closed {
					t.Fatalf("%d, %d come back as %d, %d in %#x", many, place, w.many(), w.place(), uint64(w))
				}
				if w.streak() != 0 || w.pristine() || w.flagged() != word(0).enter(closed) {
					t.Fatalf("%#x has streak %d", uint64(w), w.streak())
				}
			}
		}
	}
	if w := full.at(2, 1, false); !w.watched() || w.many() != 1 || w.place() != 2 || w&last != 0 {
		t.Errorf("%#x does not replace its fields", uint64(w))
	}
	// A ring goes round in many.
	if 2*maxLast-1 > manyMask {
		t.Error("many cannot count the slots")
	}
}

// A lister is a breaker that never opens, and the list of its failures.
type lister struct {
	b      *Breaker
	calls  int
	failed []int
}

func (l *lister) call(failed bool) {
	l.calls++
	if p, _ := l.b.Allow(); failed {
		l.failed = append(l.failed, l.calls)
		p.Failure()
	} else {
		p.Success()
	}
}

// check compares all that the log knows, which must be so many failures.
func (l *lister) check(t *testing.T, known int) {
	t.Helper()
	w := word(l.b.core.word.Load())
	for j := 1; j <= min(known, len(l.failed)) && w&logged != 0; j++ {
		want := l.calls - l.failed[len(l.failed)-j]
		got, ok := l.b.core.ago(w, j)
		if !ok {
			// Those of an earlier burst are.
			if want < 1024 {
				t.Fatalf("failure %d is forgotten, which was %d calls ago", j, want)
			}
			return
		}
		if got != want {
			t.Fatalf("failure %d was %d calls ago, want %d of %d", j, got, want, l.calls)
		}
	}
}

// A log knows its last failures, all but one slot's, however often it goes
// round, wherever places begin, and over many blocks.
func TestLogsGoRound(t *testing.T) {
	for _, size := range []int{2, 4, 8, 32, maxLast} {
		for _, from := range []uint32{0, blockMask - 2, blockMask - 1, blockMask, 1<<32 - 1} {
			t.Run(fmt.Sprintf("%d slots from %d", size, from), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(size), uint64(from)))
				b := MustNew(Config{Policy: KOfN(1024, 1024)})
				l := &lister{b: b}
				b.core.log.Store(&failureLog{size: size})
				b.core.log.Load().blocks.Store(from)
				rate := 0.5
				for i := range 6 * maxLast {
					if i%200 == 0 {
						rate = []float64{0.001, 0.01, 0.1, 0.5, 0.9}[r.IntN(5)]
					}
					l.call(r.Float64() < rate)
					if i%7 == 0 || size < 9 {
						l.check(t, size-1)
					}
				}
			})
		}
	}
}

// Bursts take all blocks before they take one again.
func TestBlocksAreTakenInOrder(t *testing.T) {
	l := new(failureLog)
	for i := range uint32(2 * (blockMask + 1)) {
		if block, want := l.reserve()>>blockBits, (i+1)&blockMask; block != want {
			t.Fatalf("block %d after %d blocks, want %d", block, i, want)
		}
	}
}

// A burst takes the blocks that it runs into, so that the next begins behind
// them.
func TestBurstsTakeTheirBlocks(t *testing.T) {
	for _, from := range []uint32{0, 7, blockMask - 3} {
		b := MustNew(Config{Policy: KOfN(900, 1000)})
		l := &lister{b: b}
		l.call(true)
		l.call(false)
		b.core.log.Load().blocks.Store(from)
		taken := map[uint32]int{}
		for burst := range 5 {
			l.call(true)
			for i := range 2500 {
				l.call(i%500 == 100)
				if w := word(b.core.word.Load()); w&logged != 0 {
					block := w.place() >> blockBits
					if was, ok := taken[block]; ok && was != burst {
						t.Fatalf("burst %d is in block %d of burst %d", burst, block, was)
					}
					taken[block] = burst
				}
			}
			if burst == 0 {
				clear(taken) // of before the blocks were set
			}
			if w := word(b.core.word.Load()); w&logged == 0 {
				t.Fatal("the burst is over too early")
			}
			if burst == 2 {
				b.Reset() // while the log is in use
				continue
			}
			for range 1000 {
				l.call(false)
			}
			if w := word(b.core.word.Load()); !w.pristine() {
				t.Fatalf("%#x after 1000 successes", uint64(w))
			}
		}
	}
}

// A word has no failures again at the n-th success after the last one, and not
// before.
func TestBurstsEndInTime(t *testing.T) {
	for _, n := range []int{33, 100, 1023, 1024} {
		for _, calls := range []string{"x", "xx", "x.x", "xx.xx", "x.x.x"} {
			b := MustNew(Config{Policy: KOfN(n, n)})
			l := &lister{b: b}
			for range 3 {
				for _, c := range calls {
					l.call(c == 'x')
				}
				for i := range n {
					if w := word(b.core.word.Load()); w.pristine() {
						t.Fatalf("KOfN(%d, %d): no failures %d calls after %s", n, n, i, calls)
					}
					l.call(false)
				}
				if w := word(b.core.word.Load()); !w.pristine() {
					t.Fatalf("KOfN(%d, %d): %#x", n, n, uint64(w))
				}
			}
		}
	}
}
