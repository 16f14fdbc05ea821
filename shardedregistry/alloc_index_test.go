//go:build !modelcheck

package shardedregistry_test

import (
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// newOwned returns n plans of which ann owns all, and bob one more.
func newOwned(t testing.TB, n int) *shardedregistry.Registry[string, plan] {
	ann, bob := "ann", "bob"
	owners := map[string][]string{ann: {ann}, bob: {bob}}
	r := shardedregistry.MustNew(shardedregistry.Config[string, plan]{
		Indexes: map[string]func(string, plan) []string{"owner": func(_ string, p plan) []string {
			return owners[*p.Owner] // allocates nothing
		}},
	})
	for i := range n {
		mustPut(t, r, key(i), plan{Owner: &ann})
	}
	mustPut(t, r, "one more", plan{Owner: &bob})
	return r
}

func TestIndexAllocations(t *testing.T) {
	r := newOwned(t, 3)
	ann, bob, k := "ann", "bob", key(0)
	u := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		UniqueIndexes: map[string]func(string, string) []string{"email": func(_, v string) []string { return []string{v} }},
	})
	mustPut(t, u, "a", "a@x")
	for _, c := range []struct {
		name string
		want float64
		do   func()
	}{
		{"ByIndex, its loop and the body", 3, func() {
			for range r.ByIndex("owner", ann) {
			}
		}},
		{"LookupBy, present", 0, func() { u.LookupBy("email", "a@x") }},
		{"LookupBy, absent", 0, func() { u.LookupBy("email", "b@x") }},
		{"Put that keeps its values: the record, and what the function returned", 2, func() { r.Put(k, plan{Steps: 3, Owner: &ann}) }},
		{"Put that moves, twice: likewise, a set added to and one taken from", 2 * (2 + 2*2), func() {
			r.Put(k, plan{Owner: &bob})
			r.Put(k, plan{Owner: &ann})
		}},
		{"Delete, and Create: the dead record, a set; the two of Create, what the function returned, a set", 8, func() {
			r.Delete(k)
			r.Create(k, plan{Owner: &ann})
		}},
	} {
		if got := testing.AllocsPerRun(100, c.do); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
}

// Under a value of 20,000 keys, a change copies a few nodes of the set and not
// all of it.
func TestIndexChangesAreLocal(t *testing.T) {
	n := iterations(20_000)
	r := newOwned(t, n)
	ann, bob := "ann", "bob"
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		mustPut(t, r, key(i), plan{Owner: &bob})
		mustPut(t, r, key(i), plan{Owner: &ann})
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / (2 * runs)
	t.Logf("%d bytes for each change among %d keys", each, n)
	if each > 3000 {
		t.Errorf("each change allocates %d bytes", each)
	}
}
