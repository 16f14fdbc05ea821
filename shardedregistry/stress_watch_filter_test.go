//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A thousand loops, each of a few keys or a prefix, come and go while eight goroutines
// write; others stay. Versions increase, no loop is told of a key that is not its own, and
// those that stay have in the end what the registry has.
func TestStressWatchFilters(t *testing.T) {
	const writers, tenants, each, loops = 8, 20, 3, 1000
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := iterations(1000)
	name := func(tenant, i int) string { return fmt.Sprintf("tenant %d/%d", tenant, i) }
	last := func(tenant int) string { return name(tenant, each) } // the key that ends the loops of a tenant
	var begun, writing atomic.Int32
	hammer(t, writers+tenants+2, func(worker int) {
		rnd := rand.New(rand.NewPCG(uint64(worker), 1))
		switch {
		case worker < writers:
			for begun.Load() < tenants {
				runtime.Gosched()
			}
			for i := range n {
				k := name(rnd.IntN(tenants), rnd.IntN(each))
				if rnd.IntN(4) == 0 {
					r.Delete(k)
				} else {
					r.Put(k, worker*n+i)
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
			if writing.Add(1) == writers {
				for tenant := range tenants {
					r.Put(last(tenant), 1)
				}
			}
		case worker < writers+tenants: // stays
			tenant := worker - writers
			prefix := fmt.Sprintf("tenant %d/", tenant)
			f := shardedregistry.Prefix(prefix)
			if tenant%2 == 0 {
				f = shardedregistry.Keys(name(tenant, 0), name(tenant, 1), name(tenant, 2), last(tenant))
			}
			view := map[string]int{}
			versions := map[string]shardedregistry.Version{}
			for state, e := range r.WatchSnapshot(ctx, f) {
				if state != nil {
					begun.Add(1)
					continue
				}
				if !strings.HasPrefix(e.Key, prefix) {
					t.Errorf("a loop of %q is told of %q", prefix, e.Key)
				}
				if e.Version <= versions[e.Key] {
					t.Errorf("%q: version %d after %d", e.Key, e.Version, versions[e.Key])
				}
				versions[e.Key] = e.Version
				if apply(view, []shardedregistry.Event[string, int]{e}); e.Key == last(tenant) {
					break
				}
			}
			for state := range r.WatchSnapshot(ctx, f) {
				if want := maps.Collect(state.All()); !maps.Equal(view, want) {
					t.Errorf("a loop of %q has %v, want %v", prefix, view, want)
				}
				break
			}
		default: // come and go
			var open []shardedregistry.Watcher[string, int]
			for i := 0; writing.Load() < writers || i < loops; i++ {
				f := shardedregistry.Keys(name(rnd.IntN(tenants), rnd.IntN(each)), fmt.Sprint("absent ", i))
				if i%3 == 0 {
					f = shardedregistry.Prefix(fmt.Sprintf("tenant %d", rnd.IntN(tenants)))
				}
				open = append(open, shardedregistry.SubscribeFiltered(r, f))
				if len(open) > loops/2 {
					at := rnd.IntN(len(open))
					open[at].Drain()
					open[at].Leave()
					open = slices.Delete(open, at, at+1)
				}
			}
			for _, w := range open {
				w.Leave()
			}
		}
	})
	wantTraces(t, r)
}
