//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A notification that is done was looked at: its watcher has read the record, and not only
// begun to. Here a writer has stored the record while a snapshot is being taken,
// and stalls before it has dated it; so who has read the record has dated it.
func TestDoneWasRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(r *names1) (look func())
	}{
		{"Watch", func(r *names1) func() {
			w := shardedregistry.Subscribe(r)
			put(1).Do(r)
			w.Drain()
			return func() { w.Drain() }
		}},
	} {
		for _, change := range []struct {
			name string
			do   func(r *names1)
		}{
			{"changed", func(r *names1) { shardedregistry.Stored(r, "a", 8) }},
			{"deleted", func(r *names1) { shardedregistry.Kill(r, "a") }},
		} {
			t.Run(tt.name+", "+change.name, func(t *testing.T) {
				mc.Check(t, mc.Config{Operations: tt.name + " ∥ a look at the slip"}, func(m *mc.M) {
					r := remembered(8, with7)
					look := tt.open(r)
					shardedregistry.Join(r)
					change.do(r) // and stalls
					shardedregistry.Changed(r, "a")
					m.Go(look)
					m.Go(func() {
						if shardedregistry.IsDone(r, "a") && !shardedregistry.IsDated(r, "a") {
							m.Failf("the slip is done, and the record has not been read")
						}
					})
				})
			})
		}
	}
}

// A snapshot looks once more after it has joined and looked, beside changes that
// begin then: as long as it looks they know of it.
func TestSnapshotLooksNoMoreThanItMust(t *testing.T) {
	for _, threads := range []threads{
		{{put(1), put(2)}},
		{{remove, create(5)}},
		{{put(1)}, {other(put(2))}},
		{{remove}, {other(put(2))}},
	} {
		operations := operations(threads, "the second look")
		t.Run(operations, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: operations}, func(m *mc.M) {
				r := twoKeys(both7)()
				taker := shardedregistry.Join(r)
				m.Go(func() {
					if !taker.Collect() {
						m.Failf("a change that knew of the snapshot makes it look again")
					}
				})
				for _, calls := range threads {
					doing(m, r, calls)
				}
				m.Final(func() { taker.Leave() })
			})
		})
	}
}
