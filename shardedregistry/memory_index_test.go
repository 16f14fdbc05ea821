//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Values that come and go, one for each life of an entity, leave nothing behind
// (Kubernetes issue 84959).
func TestIndexMemory(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		Shards:        1,
		Indexes:       map[string]func(string, string) []string{"id": func(_, id string) []string { return []string{id, "all"} }},
		UniqueIndexes: map[string]func(string, string) []string{"unique": func(_, id string) []string { return []string{id} }},
	})
	uuid := func(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(i)*2654435761, i) }
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const live = 100
	churn := func(from, to int) {
		for i := from; i < to; i++ {
			mustPut(t, r, key(i%live), uuid(i))
			if i%3 == 0 {
				r.Delete(key(i % live))
			}
		}
	}
	churn(0, 10*live)
	before := heap()
	n := iterations(100_000)
	churn(10*live, n)
	all := 0
	for range n / 10 { // many at once, so that the tables grow, and shrink again
		mustPut(t, r, key(live+all), uuid(n+all))
		all++
	}
	for i := range all {
		r.Delete(key(live + i))
	}
	if after := heap(); after > before+256<<10 {
		t.Errorf("%d values left %d bytes", n, after-before)
	}
	shelves, keys, pins := shardedregistry.Pins(r)
	if want := 2*r.Len() + 1; shelves != want || keys != 3*r.Len() || pins != keys {
		t.Errorf("%d entities keep %d values, %d keys and %d pins", r.Len(), shelves, keys, pins)
	}
	for i := range live {
		r.Delete(key(i))
	}
	if shelves, _, _ := shardedregistry.Pins(r); shelves != 0 {
		t.Errorf("%d values are left of nothing", shelves)
	}
}
