//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Writers change, delete and create few keys, and other keys come and go; loops
// of all kinds watch, some slowly, some not for long. The versions that a loop
// yields for a key increase, and in the end each has what the registry has.
func TestStressWatch(t *testing.T) {
	const writers, watchers, keys = 3, 3, 5
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	n := iterations(4000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy, done := context.WithCancel(ctx) // until the writers are done
	defer done()
	const last = -1 // the key that ends the loops
	var begun atomic.Int32
	var writing atomic.Int32
	hammer(t, writers+watchers+2, func(worker int) {
		switch {
		case worker < writers:
			for begun.Load() < watchers { // so that all see something
				runtime.Gosched()
			}
			rnd := rand.New(rand.NewPCG(uint64(worker), 1))
			for i := range n {
				k := rnd.IntN(keys)
				switch rnd.IntN(4) {
				case 0:
					r.Delete(k)
				case 1:
					own := keys + worker*n + i // comes and goes
					r.Create(own, i)
					r.Delete(own)
				default:
					r.Put(k, worker*n+i)
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
			if writing.Add(1) == writers {
				r.Put(last, 1)
				done()
			}
		case worker < writers+watchers:
			view := map[int]int{}
			versions := map[int]shardedregistry.Version{}
			for state, e := range r.WatchSnapshot(ctx) {
				if state != nil {
					for entry := range state.Entries() {
						view[entry.Key], versions[entry.Key] = entry.Value, entry.Version
					}
					begun.Add(1)
					continue
				}
				if e.Version <= versions[e.Key] {
					t.Errorf("key %d: version %d after %d", e.Key, e.Version, versions[e.Key])
				}
				if _, shown := view[e.Key]; e.Deleted && !shown {
					t.Errorf("the deletion of %d is yielded, which was not shown", e.Key)
				}
				versions[e.Key] = e.Version
				if apply(view, []shardedregistry.Event[int, int]{e}); e.Key == last {
					break
				}
				if worker == writers {
					runtime.Gosched()
				}
			}
			// What the loop had not come to when the last key came: nothing that
			// was changed before it, except what came with it.
			for state := range r.WatchSnapshot(ctx) {
				if want := maps.Collect(state.All()); ctx.Err() == nil && !maps.Equal(view, want) {
					t.Errorf("a loop has %v, want %v", view, want)
				}
				break
			}
		default: // loops that end soon, and snapshots
			for busy.Err() == nil {
				seen := 0
				for range r.Watch(busy) {
					if seen++; seen == worker || r.Len() == 0 {
						break
					}
				}
				r.Snapshot()
			}
		}
	})
	wantTraces(t, r)
	if n := shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d old records are kept", n)
	}
}

// Goroutines pass a number on by waiting for each other's keys, while others
// wait for a key that comes and goes.
func TestStressWait(t *testing.T) {
	const ring = 3
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	n := iterations(3000)
	var over atomic.Bool
	hammer(t, ring+3, func(worker int) {
		switch {
		case worker < ring:
			var since shardedregistry.Version
			for i := range n {
				if worker > 0 || i > 0 { // the first one begins
					e, err := r.Wait(t.Context(), (worker+ring-1)%ring, since)
					if want := i + 1; err != nil || worker > 0 && e.Value != want || worker == 0 && e.Value != i {
						t.Errorf("goroutine %d waits for %d and finds %v, %v", worker, want, e, err)
						return
					}
					since = e.Version
				}
				r.Put(worker, i+1)
			}
			over.Store(true)
			r.Put(-1, 0)
		case worker == ring:
			for !over.Load() {
				r.Put(-1, 1)
				r.Delete(-1)
			}
			r.Put(-1, 1)
		default:
			for !over.Load() {
				e, err := r.Wait(t.Context(), -1, 0)
				if err != nil {
					t.Errorf("Wait = %v", err)
				}
				if e, err := r.Wait(t.Context(), -1, e.Version-1); err == nil && e.Version == 0 {
					t.Errorf("Wait = %v, %v", e, err)
				}
			}
		}
	})
	wantTraces(t, r)
}
