//go:build !modelcheck

package shardedregistry_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestAllAndEntries(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	want := map[string]int{}
	for i := range 1000 {
		want[key(i)] = i
		mustPut(t, &r, key(i), i)
	}
	for i := range 300 {
		r.Delete(key(i))
		delete(want, key(i))
	}
	if got := maps.Collect(r.All()); !maps.Equal(got, want) {
		t.Errorf("All yields %d entries, want the %d that were stored", len(got), len(want))
	}
	keys := slices.Sorted(r.Keys())
	if !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
		t.Errorf("Keys yields %d keys, want the %d that were stored", len(keys), len(want))
	}
	for range r.Keys() {
		break
	}
	for k := range new(shardedregistry.Registry[string, int]).Keys() {
		t.Errorf("Keys of a registry that was never used yields %s", k)
	}
	seen := 0
	for e := range r.Entries() {
		if want[e.Key] != e.Value || e.Version != 1 {
			t.Errorf("Entries yields %v, want value %d at version 1", e, want[e.Key])
		}
		seen++
	}
	if seen != len(want) || r.Len() != len(want) {
		t.Errorf("Entries yields %d entries and Len is %d, want %d", seen, r.Len(), len(want))
	}
}

// T20: a loop that is left early leaves nothing behind.
func TestLeaveLoopEarly(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	for i := range 100 {
		mustPut(t, &r, key(i), i)
	}
	for range r.All() {
		break
	}
	for range r.Entries() {
		break
	}
	for i := range 2000 { // grows every table, which waits for every bucket
		mustPut(t, &r, key(i), -i)
	}
	wantValue(t, &r, key(1999), -1999)
}

// T16, T21: the body of a loop may change what it loops over.
func TestChangeInLoop(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	const keys = 200
	for i := range keys {
		mustPut(t, r, key(i), i)
	}
	var seen []string
	for k, v := range r.All() {
		seen = append(seen, k)
		if e, ok := r.Delete(k); !ok || e.Value != v {
			t.Fatalf("Delete(%s) = %v, %v", k, e, ok)
		}
		if _, err := r.Create(k, -v); err != nil {
			t.Fatalf("Create(%s) after Delete: %v", k, err)
		}
		mustPut(t, r, "new "+k, v) // makes the tables grow
	}
	for k, n := range counts(seen) {
		if n != 1 {
			t.Errorf("All yielded %s %d times", k, n)
		}
	}
	for i := range keys {
		wantValue(t, r, key(i), -i)
		if !slices.Contains(seen, key(i)) {
			t.Errorf("All did not yield %s, which its own turn only would have deleted", key(i))
		}
	}
}
