//go:build !modelcheck

package shardedregistry_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A list of subscriptions is never extended in place: two who add to the same one at the
// same time would overwrite one another, and a loop would miss a change for ever.
func TestSubscriptionListsKeepApart(t *testing.T) {
	for n := range 40 {
		if !shardedregistry.KeepsApart(n) {
			t.Errorf("two that extend a list of %d subscriptions overwrite one another", n)
		}
	}
}

// Loops that begin at the same time are all subscribers.
func TestWatchersBeginAtOnce(t *testing.T) {
	for range 2000 {
		r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 1})
		all := make([]shardedregistry.Watcher[int, int], 3+8)
		var ready, come sync.WaitGroup
		ready.Add(8)
		for i := range all {
			if i < 3 {
				all[i] = shardedregistry.Subscribe(r)
				continue
			}
			come.Go(func() {
				ready.Done()
				ready.Wait()
				all[i] = shardedregistry.Subscribe(r)
			})
		}
		come.Wait()
		r.Put(1, 1)
		for i, w := range all {
			if got := w.Drain(); len(got) != 1 {
				t.Fatalf("loop %d has %v", i, got)
			}
			w.Leave()
		}
	}
}

// A key that comes again while its deletion waits for a loop is spelled as it was
// given then.
func TestWatchKeepsSpelling(t *testing.T) {
	for _, history := range []int{0, 16} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
			History:   history,
			Normalize: func(k string) (string, error) { return strings.ToLower(k), nil },
		})
		w := shardedregistry.Subscribe(r)
		r.Create("a", 1)
		r.Delete("a")
		r.Create("A", 2)
		for _, then := range []func(){func() { w.Drain() }, w.Leave, func() {}} {
			_, err := r.Create("a", 3)
			if exists, ok := err.(*shardedregistry.ExistsError); !ok || exists.Stored != "A" {
				t.Errorf("Create = %v, want a key that was created as A", err)
			}
			then()
		}
	}
}
