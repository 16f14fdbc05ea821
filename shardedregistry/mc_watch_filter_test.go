//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

type filters = []shardedregistry.Filter[string]

var ofA = map[string]filters{
	"Keys":              {shardedregistry.Keys("a")},
	"Prefix":            {shardedregistry.Prefix("a")},
	"Keys and a Prefix": {shardedregistry.Keys("a"), shardedregistry.Prefix("a")},
	"Matching":          {shardedregistry.Matching(func(k string) bool { return k == "a" })},
}

// A loop that joins with a filter, and then looks, misses no later change of its key,
// while loops of other keys join and leave: each replaces the subscribers.
func TestWatchFilterJoins(t *testing.T) {
	for _, name := range []string{"Keys", "Prefix"} {
		f := ofA[name]
		for _, tt := range []struct {
			name    string
			first   []call
			threads threads
			until   shardedregistry.Version
		}{
			{"changed", with7, threads{{put(1)}}, 2},
			{"created", empty, threads{{create(1)}}, 1},
			{"deleted and created", with7, threads{{remove, create(5)}}, 3},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
				cfg.Operations = operations(tt.threads, "Watch("+name+"): Lookup", "Watch(Keys(b)): leave")
				mc.Check(t, cfg, func(m *mc.M) {
					r := twoKeys(tt.first)()
					m.Go(func() {
						w := shardedregistry.SubscribeFiltered(r, f...)
						if e, _ := r.Lookup("a"); e.Version < tt.until {
							follow(m, w, tt.until)
							return
						}
						w.Leave()
					})
					m.Go(func() { shardedregistry.SubscribeFiltered(r, shardedregistry.Keys("b")).Leave() })
					for _, calls := range tt.threads {
						doing(m, r, calls)
					}
					m.Final(func() { clean(m, r) })
				})
			})
		}
	}
}

// A loop that watches its key already, by one topic or two, sees how the key ends while
// another loop of it leaves.
func TestWatchFilterStays(t *testing.T) {
	for _, name := range []string{"Keys and a Prefix", "Matching"} {
		f := ofA[name]
		for _, tt := range []struct {
			name    string
			threads threads
			until   shardedregistry.Version
		}{
			{"changes", threads{{put(1), put(2)}}, 3},
			{"deleted", threads{{remove}}, 2},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
				cfg.Operations = operations(tt.threads, "Watch("+name+")", "leave")
				mc.Check(t, cfg, func(m *mc.M) {
					r := twoKeys(with7)()
					w, ends := shardedregistry.SubscribeFiltered(r, f...), shardedregistry.SubscribeFiltered(r, f...)
					for _, calls := range tt.threads {
						doing(m, r, calls)
					}
					m.Go(func() { follow(m, w, tt.until) })
					m.Go(ends.Leave)
					m.Final(func() { clean(m, r) })
				})
			})
		}
	}
}

// What a change costs beside loops that watch other keys: the look-up of topics loads no
// shared word.
func TestWatchFilterCosts(t *testing.T) {
	for _, light := range []bool{true, false} {
		config := shardedregistry.Config[string, int]{}
		if !light {
			config.Normalize = func(k string) (string, error) { return k, nil }
		}
		r := shardedregistry.MustNew(config)
		r.Put("a", 1)
		put := func() mc.Cost { return mc.Measure(func() { r.Put("a", 8) }) }
		without := put()
		var all []shardedregistry.Watcher[string, int]
		for _, f := range []shardedregistry.Filter[string]{
			shardedregistry.Prefix("b/"), shardedregistry.Prefix("a/"), shardedregistry.Keys("b", "c"), shardedregistry.Keys[string](),
		} {
			all = append(all, shardedregistry.SubscribeFiltered(r, f))
			if got := put(); got != without {
				t.Errorf("a Put beside %d loops of other keys costs %v, want %v", len(all), got, without)
			}
		}
		own := shardedregistry.SubscribeFiltered(r, shardedregistry.Prefix("a"))
		r.Put("a", 1)
		own.Drain()
		told := without
		told.Loads, told.RMWs, told.TableReads = told.Loads+5, told.RMWs+2, told.TableReads+1
		if got := put(); got != told {
			t.Errorf("a Put of which a loop is told costs %v, want %v", got, told)
		}
		own.Leave()
		for _, w := range all {
			w.Leave()
		}
	}
}
