//go:build modelcheck

package atomicbreaker

import (
	"fmt"
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
