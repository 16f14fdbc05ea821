//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

var rewriteTold = []struct {
	name    string
	first   []call
	threads threads
}{
	{"cleared", a2b2, threads{{clears}, {put(7)}}},
	{"cleared and created", a2, threads{{clears}, {other(create(7))}}},
	{"cleared and deleted", a2, threads{{clears}, {remove, create(7)}}},
	{"replaced", a2, threads{{replaces("ab", 3)}, {put(7)}}},
	{"replaced over a deletion", a2, threads{{replaces("ab", 3)}, {remove}}},
	{"replaced by another key", a2, threads{{replaces("b", 3)}, {other(create(7))}}},
	{"replaced and cleared", a2, threads{{replaces("b", 3)}, {clears}}},
	{"cleared and moved", a2, threads{{clears}, {moves("a", "b")}}},
}

// A loop that watches sees how all keys end.
func TestClearWatched(t *testing.T) {
	for _, tt := range rewriteTold {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = operations(tt.threads, "Watch")
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				w := shardedregistry.Subscribe(r)
				var seen []news
				m.Go(func() { seen = w.Drain() })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() {
					told(m, r, append(seen, w.Drain()...), false)
					w.Leave()
					clean(m, r)
				})
			})
		})
	}
}

// WatchFrom yields every change of each key in order.
func TestClearStreamed(t *testing.T) {
	for _, tt := range rewriteTold {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Preemptions = 1
			cfg.Operations = operations(tt.threads, "WatchFrom")
			mc.Check(t, cfg, func(m *mc.M) {
				r := remembered(64, tt.first)
				s := shardedregistry.OpenFeed(r)
				var seen []news
				m.Go(func() { seen, _ = s.Drain() })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() {
					rest, lost := s.Drain()
					if lost {
						m.Failf("changes are lost")
					}
					told(m, r, append(seen, rest...), true)
					clean(m, r)
				})
			})
		})
	}
}
