//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

// However callers overlap who begin the same departures, each begins once, before
// begin returns, and is seen by those who look from before it. Meanwhile the
// oldest departure is dropped, and nothing that came after it.
func TestDeparturesAreAppendedOnceInEveryOrder(t *testing.T) {
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
				// The list is as if it had keptDepartures, of which all but the first
				// and the last are left out.
				var l departures
				l.init(nil)
				first, last := l.last.Load(), new(departure)
				last.number.Store(keptDepartures)
				first.next.Store(last)
				l.last.Store(last)
				begun := []*departure{{hash: 1}, {hash: 2}}
				for _, mine := range threads {
					m.Go(func() {
						for _, i := range mine {
							d := begun[i]
							l.append(d)
							if n := d.number.Load(); n == 0 || l.last.Load().number.Load() < n {
								m.Failf("era %d has not begun when begin returns", i)
							}
							if !l.departed(last, d.hash) || !l.departed(first, d.hash) || l.departed(last, 3) {
								m.Failf("who departed is not told after era %d", i)
							}
						}
					})
				}
				m.Final(func() {
					seen, n := map[uint64]bool{}, last.number.Load()
					for d := last.next.Load(); d != nil; d = d.next.Load() {
						if n++; seen[d.hash] || d.number.Load() != n {
							m.Failf("era %d of hash %d: number %d, seen before: %v", n, d.hash, d.number.Load(), seen[d.hash])
							return
						}
						seen[d.hash] = true
					}
					if l.last.Load().number.Load() != n || l.oldest.Load() != last || first.next.Load() != first {
						m.Failf("the last era is not the %dth, or the first was not dropped", n)
					}
				})
			})
		})
	}
}

// However callers overlap who drop departures, and one who asks what came after one
// of them: the oldest only moves forward, what it has passed is cut off, and
// no departure is overlooked.
func TestDeparturesAreDroppedInEveryOrder(t *testing.T) {
	for _, dropped := range []int{1, 2} {
		t.Run(fmt.Sprint(dropped, " of 3"), func(t *testing.T) {
			cfg := mc.Config{Operations: "drop ∥ drop ∥ who departed"}
			mc.Check(t, cfg, func(m *mc.M) {
				var l departures
				l.init(nil)
				kept := []*departure{l.last.Load(), {hash: 1}, {hash: 2}}
				kept[1].number.Store(uint64(4 - dropped)) // the second is young enough, or is not
				kept[2].number.Store(keptDepartures + 2)
				kept[0].next.Store(kept[1])
				kept[1].next.Store(kept[2])
				l.last.Store(kept[2])
				for range 2 {
					m.Go(func() { l.drop(keptDepartures + 2) })
				}
				m.Go(func() {
					if !l.departed(kept[0], 1) {
						m.Failf("who departed first is forgotten")
					}
				})
				m.Final(func() {
					for i, d := range kept[:2] {
						if next := d.next.Load(); (next == d) != (i < dropped) {
							m.Failf("era %d was dropped: %v", i, next == d)
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

// Whoever comes back to a departure that was dropped meanwhile goes on at the tail,
// and changes nothing of it.
func TestDeparturesAreAppendedBesideOneDroppedInEveryOrder(t *testing.T) {
	cfg := mc.Config{Operations: "begin 0 ∥ begin 1, and drop the first"}
	mc.Check(t, cfg, func(m *mc.M) {
		var l departures
		l.init(nil)
		first, begun := l.last.Load(), []*departure{{hash: 1}, {hash: 2}}
		m.Go(func() { l.append(begun[0]) })
		m.Go(func() {
			l.append(begun[1])
			l.drop(first.number.Load() + keptDepartures) // as if so many had begun
		})
		m.Final(func() {
			numbers := []uint64{first.number.Load(), begun[0].number.Load(), begun[1].number.Load()}
			slices.Sort(numbers[1:])
			if !slices.Equal(numbers, []uint64{1, 2, 3}) || l.last.Load().number.Load() != 3 || first.next.Load() != first {
				m.Failf("the numbers are %v, the last %d", numbers, l.last.Load().number.Load())
			}
		})
	})
}
