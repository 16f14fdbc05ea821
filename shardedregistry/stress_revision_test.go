//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Writers change, delete and create few keys; loops over WatchFrom break off and go on,
// and begin anew when they were overtaken. Versions and revisions increase, and in the end
// each has what the registry has.
func TestStressWatchFrom(t *testing.T) {
	const writers, loops, keys, last = 4, 4, 7, -1
	for _, history := range []int{1, 16, 4096} {
		r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2, History: history})
		n := iterations(2000)
		var writing atomic.Int32
		hammer(t, writers+loops, func(worker int) {
			rnd := rand.New(rand.NewPCG(uint64(worker), 1))
			if worker < writers {
				for i := range n {
					if k := rnd.IntN(keys); rnd.IntN(4) == 0 {
						r.Delete(k)
					} else {
						r.Put(k, worker*n+i)
					}
					if i%64 == 0 {
						runtime.Gosched()
					}
				}
				if writing.Add(1) == writers {
					r.Put(last, 1)
				}
				return
			}
			for { // begins anew
				state := r.Snapshot()
				view := maps.Collect(state.All())
				versions, yielded := map[int]shardedregistry.Version{}, map[int]shardedregistry.Event[int, int]{}
				for e := range state.Entries() {
					versions[e.Key] = e.Version
				}
				at, compacted := state.Revision(), false
				for view[last] == 0 && !compacted { // goes on
					for c, err := range r.WatchFrom(t.Context(), at) {
						if err != nil {
							if compacted = true; !errors.Is(err, shardedregistry.ErrCompacted) {
								t.Error(err)
								return
							}
							break
						}
						if c.Revision <= at {
							t.Errorf("revision %d after %d", c.Revision, at)
						}
						if before, ok := yielded[c.Key]; ok && (c.Version <= before.Version || !before.Deleted && c.Version != before.Version+1) {
							t.Errorf("%v comes after %v", c.Event, before)
						}
						yielded[c.Key] = c.Event
						if at = c.Revision; c.Version <= versions[c.Key] {
							continue // the snapshot may contain later changes than its revision
						}
						versions[c.Key] = c.Version
						apply(view, []shardedregistry.Event[int, int]{c.Event})
						if rnd.IntN(10) == 0 || c.Key == last {
							break
						}
					}
				}
				if compacted {
					continue
				}
				for k, v := range maps.Collect(r.All()) {
					if view[k] != v {
						t.Errorf("history %d: a loop has %v of key %d, want %d", history, view[k], k, v)
					}
				}
				if len(view) != r.Len() {
					t.Errorf("history %d: a loop has %v", history, view)
				}
				return
			}
		})
	}
}
