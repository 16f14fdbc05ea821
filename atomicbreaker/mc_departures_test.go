//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

// However callers overlap who begin the same eras, each begins once, before
// begin returns, and is seen by those who look from before it. Meanwhile the
// oldest era is dropped, and nothing that came after it.
func TestErasBeginOnceInEveryOrder(t *testing.T) {
	for name, threads := range map[string][][]int{
		"two helpers":           {{0}, {0}},
		"two eras":              {{0}, {1}},
		"helpers of both":       {{0, 1}, {1, 0}},
		"three helpers":         {{0}, {0}, {0}},
		"an era and a helper":   {{0}, {0}, {1}},
		"one after the other":   {{0, 1}, {0}},
		"two and a late helper": {{0, 1}, {1}, {0}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{}
			if name == "an era and a helper" || name == "two and a late helper" { // too long for all orders
				cfg = mc.Config{Mode: mc.Bounded, Preemptions: 2}
			}
			cfg.Operations = mc.Listed(threads, func(i int) string { return fmt.Sprint("begin ", i) })
			mc.Check(t, cfg, func(m *mc.M) {
				// The list is as if it had keptEras, of which all but the first
				// and the last are left out.
				var l eras
				l.init(nil)
				first, last := l.now.Load(), new(era)
				last.number.Store(keptEras)
				first.next.Store(last)
				l.now.Store(last)
				begun := []*era{{hash: 1}, {hash: 2}}
				for _, mine := range threads {
					m.Go(func() {
						for _, i := range mine {
							e := begun[i]
							l.begin(e)
							if n := e.number.Load(); n == 0 || l.now.Load().number.Load() < n {
								m.Failf("era %d has not begun when begin returns", i)
							}
							if !l.departed(last, e.hash) || !l.departed(first, e.hash) || l.departed(last, 3) {
								m.Failf("who departed is not told after era %d", i)
							}
						}
					})
				}
				m.Final(func() {
					seen, n := map[uint64]bool{}, last.number.Load()
					for e := last.next.Load(); e != nil; e = e.next.Load() {
						if n++; seen[e.hash] || e.number.Load() != n {
							m.Failf("era %d of hash %d: number %d, seen before: %v", n, e.hash, e.number.Load(), seen[e.hash])
							return
						}
						seen[e.hash] = true
					}
					if l.now.Load().number.Load() != n || l.oldest.Load() != last || first.next.Load() != first {
						m.Failf("the last era is not the %dth, or the first was not dropped", n)
					}
				})
			})
		})
	}
}

// However callers overlap who drop eras, and one who asks what came after one
// of them: the oldest only moves forward, what it has passed is cut off, and
// no departure is overlooked.
func TestErasAreDroppedInEveryOrder(t *testing.T) {
	for _, dropped := range []int{1, 2} {
		t.Run(fmt.Sprint(dropped, " of 3"), func(t *testing.T) {
			cfg := mc.Config{Operations: "drop ∥ drop ∥ who departed"}
			mc.Check(t, cfg, func(m *mc.M) {
				var l eras
				l.init(nil)
				kept := []*era{l.now.Load(), {hash: 1}, {hash: 2}}
				kept[1].number.Store(uint64(4 - dropped)) // the second is young enough, or is not
				kept[2].number.Store(keptEras + 2)
				kept[0].next.Store(kept[1])
				kept[1].next.Store(kept[2])
				l.now.Store(kept[2])
				for range 2 {
					m.Go(func() { l.drop(keptEras + 2) })
				}
				m.Go(func() {
					if !l.departed(kept[0], 1) {
						m.Failf("who departed first is forgotten")
					}
				})
				m.Final(func() {
					for i, e := range kept[:2] {
						if next := e.next.Load(); (next == e) != (i < dropped) {
							m.Failf("era %d was dropped: %v", i, next == e)
						}
					}
					if l.oldest.Load() != kept[dropped] {
						m.Failf("the oldest era is not number %d", dropped)
					}
				})
			})
		})
	}
}

// Whoever comes back to an era that was dropped meanwhile goes on at the tail,
// and changes nothing of it.
func TestErasBeginBesideOneDroppedInEveryOrder(t *testing.T) {
	cfg := mc.Config{Operations: "begin 0 ∥ begin 1, and drop the first"}
	mc.Check(t, cfg, func(m *mc.M) {
		var l eras
		l.init(nil)
		first, begun := l.now.Load(), []*era{{hash: 1}, {hash: 2}}
		m.Go(func() { l.begin(begun[0]) })
		m.Go(func() {
			l.begin(begun[1])
			l.drop(first.number.Load() + keptEras) // as if so many had begun
		})
		m.Final(func() {
			numbers := []uint64{first.number.Load(), begun[0].number.Load(), begun[1].number.Load()}
			slices.Sort(numbers[1:])
			if !slices.Equal(numbers, []uint64{1, 2, 3}) || l.now.Load().number.Load() != 3 || first.next.Load() != first {
				m.Failf("the numbers are %v, the last %d", numbers, l.now.Load().number.Load())
			}
		})
	})
}
