//go:build !modelcheck

package shardedregistry_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever a loop takes part in costs the same beside 1,000 other loops as beside 4,000: joining,
// the first change of a key, further ones, its deletion, and leaving.
func TestLoopsCostTheSameBesideOthers(t *testing.T) {
	type steps map[string]uint64 // bytes a loop
	filters := map[string][]shardedregistry.Filter[string]{
		"one key":            {shardedregistry.Keys("hot")},
		"one key, two times": {shardedregistry.Keys("hot"), shardedregistry.Prefix("ho")},
		"a prefix":           {shardedregistry.Prefix("h")},
		"all keys":           nil,
	}
	for name, filter := range filters {
		measured := func(loops int) steps {
			var r shardedregistry.Registry[string, int]
			mustPut(t, &r, "hot", 0)
			all, got := make([]shardedregistry.Watcher[string, int], loops), steps{}
			step := func(name string, f func()) { got[name] = allocated(f) / uint64(loops) }
			drain := func(version int) func() {
				return func() {
					for i, w := range all {
						if events := w.Drain(); len(events) != 1 {
							t.Fatalf("%s: loop %d of %d has %v after change %d", name, i, loops, events, version)
						}
					}
				}
			}
			step("joining", func() {
				for i := range all {
					all[i] = shardedregistry.SubscribeFiltered(&r, filter...)
				}
			})
			step("the first change", func() { r.Put("hot", 1) })
			step("the first look", drain(1))
			step("the second change", func() { r.Put("hot", 2) })
			step("the second look", drain(2))
			step("the deletion", func() { r.Delete("hot") })
			step("the last look", drain(3))
			step("the creation", func() { r.Create("hot", 3) })
			step("leaving", func() {
				for _, w := range all {
					w.Leave()
				}
			})
			wantTraces(t, &r)
			return got
		}
		few, many := measured(1000), measured(4000)
		for step, bytes := range many {
			if bytes > few[step]+few[step]/2+64 {
				t.Errorf("%s: %s takes %d bytes beside 4,000 loops, and %d beside 1,000", name, step, bytes, few[step])
			}
			if step != "joining" && step != "leaving" && bytes > 300 {
				t.Errorf("%s: %s takes %d bytes a loop", name, step, bytes)
			}
		}
	}
}

// Loops that look at a deletion, in whatever order, find one that has yet to look without asking
// all others: the last one unlinks the cell.
func TestLooksAtADeletionAskFewOthers(t *testing.T) {
	const loops = 4000
	for name, order := range map[string]func(i int) int{
		"as they came":        func(i int) int { return i },
		"the other way round": func(i int) int { return loops - 1 - i },
		"at random": func() func(i int) int {
			p := rand.New(rand.NewPCG(1, 2)).Perm(loops)
			return func(i int) int { return p[i] }
		}(),
	} {
		var r shardedregistry.Registry[string, int]
		mustPut(t, &r, "hot", 0)
		all := make([]shardedregistry.Watcher[string, int], loops)
		for i := range all {
			all[i] = shardedregistry.SubscribeTo(&r, "hot")
		}
		r.Delete("hot")
		asked := 0
		for i := range loops {
			w := all[order(i)]
			w.Drain()
			if i < loops-1 {
				asked += w.Asked("hot")
			}
		}
		if n := shardedregistry.Linked(&r); n != 0 {
			t.Errorf("%s: %d cells stay", name, n)
		}
		if asked > 40*loops {
			t.Errorf("%s: each of %d loops asks %d others", name, loops, asked/loops)
		}
		for _, w := range all {
			w.Leave()
		}
		wantTraces(t, &r)
	}
}
