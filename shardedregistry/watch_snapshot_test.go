//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/shardedregistry"
)

// WatchSnapshot yields nothing that its snapshot shows, and no deletion of what
// it has not shown.
func TestWatchSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		mustPut(t, r, "old", 1)
		mustPut(t, r, "kept", 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		goOn := make(chan struct{})
		var got []event
		go func() {
			for state, e := range r.WatchSnapshot(ctx) {
				if state != nil {
					wantSnapshot(t, state, map[string]int{"old": 1, "kept": 1})
					<-goOn
					continue
				}
				got = append(got, e)
			}
		}()
		synctest.Wait()
		shardedregistry.Changed(r, "kept") // told, and not newer than the snapshot
		mustPut(t, r, "briefly", 1)
		r.Delete("briefly")
		r.Delete("old")
		close(goOn)
		synctest.Wait()
		wantEvents(t, got, event{"old", 1, 2, true, false})

		got = nil // a later life of a key that was shown before
		v := mustPut(t, r, "old", 2)
		synctest.Wait()
		wantEvents(t, got, event{"old", 2, v, false, false})
		got = nil
		r.Delete("old")
		synctest.Wait()
		wantEvents(t, got, event{"old", 2, v + 1, true, false})
		mustPut(t, r, "kept", 2)
		r.Delete("kept")
		synctest.Wait()
	})
}

// A base tells a key's version once.
func TestWatchSnapshotForgetsItsBase(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 1)
	next, stop := iter.Pull2(r.WatchSnapshot(t.Context()))
	defer stop()
	next()
	r.Delete("a")
	if _, e, _ := next(); e != (event{"a", 1, 2, true, false}) {
		t.Fatalf("got %v", e)
	}
	mustPut(t, r, "a", 3)
	r.Delete("a") // never shown since
	end := mustPut(t, r, "z", 1)
	if _, e, _ := next(); e != (event{"z", 1, end, false, false}) {
		t.Fatalf("got %v", e)
	}
}
