//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// task is an entity with what it is found by.
type task struct {
	Owner string
	Tags  []string
	Email string // unique, if not empty
}

var errEmptyOwner = errors.New("a task needs an owner")

func byOwner(_ string, v task) []string { return []string{v.Owner} }
func byTag(_ string, v task) []string   { return v.Tags }

func byEmail(_ string, v task) []string {
	if v.Email == "" {
		return nil
	}
	return []string{v.Email}
}

type (
	tasks    = shardedregistry.Registry[string, task]
	taskFunc = func(string, task) []string
)

func newTasks() *tasks {
	return shardedregistry.MustNew(shardedregistry.Config[string, task]{
		Shards:        2,
		Normalize:     normalize,
		Indexes:       map[string]taskFunc{"owner": byOwner, "tag": byTag},
		UniqueIndexes: map[string]taskFunc{"email": byEmail},
		Check: func(_ string, v task) error {
			if v.Owner == "" {
				return errEmptyOwner
			}
			return nil
		},
	})
}

// found returns the keys that a loop over an index yields, in order.
func found[V any](t testing.TB, entries iter.Seq[shardedregistry.Entry[string, V]]) string {
	t.Helper()
	var keys []string
	for e := range entries {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	if len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Errorf("a key is yielded twice: %v", keys)
	}
	return strings.Join(keys, " ")
}

// agree fails the test unless each index is what the functions say of what the
// keys hold, has no other pins, and nobody has a unique value twice.
func agree[K comparable, V any](t testing.TB, r *shardedregistry.Registry[K, V], indexes, unique map[string]func(K, V) []string) {
	t.Helper()
	shelves, pins := 0, 0
	for name, values := range maps.Collect(both(indexes, unique)) {
		want := map[string]map[K]shardedregistry.Version{}
		for e := range r.Entries() {
			for _, v := range values(e.Key, e.Value) {
				if want[v] == nil {
					want[v] = map[K]shardedregistry.Version{}
				}
				want[v][e.Key] = e.Version
			}
		}
		for v, keys := range want {
			got := map[K]shardedregistry.Version{}
			for e := range r.ByIndex(name, v) {
				got[e.Key] = e.Version
			}
			if !maps.Equal(got, keys) {
				t.Errorf("ByIndex(%s, %q) yields %v, want %v", name, v, got, keys)
			}
			if unique[name] != nil && len(keys) > 1 {
				t.Errorf("%s %q is had by %v", name, v, keys)
			}
			pins += len(keys)
		}
		values := slices.Sorted(r.IndexValues(name))
		if all := slices.Sorted(maps.Keys(want)); !slices.Equal(values, all) {
			t.Errorf("IndexValues(%s) yields %q, want %q", name, values, all)
		}
		shelves += len(want)
	}
	gotShelves, gotKeys, gotPins := shardedregistry.Pins(r)
	if gotShelves != shelves || gotKeys != pins || gotPins != pins {
		t.Errorf("the indexes keep %d values, %d keys and %d pins, want %d, %d and %[5]d", gotShelves, gotKeys, gotPins, shelves, pins)
	}
}

func both[K, V any](x, y map[string]func(K, V) []string) iter.Seq2[string, func(K, V) []string] {
	return func(yield func(string, func(K, V) []string) bool) {
		for _, m := range []map[string]func(K, V) []string{x, y} {
			for name, f := range m {
				if !yield(name, f) {
					return
				}
			}
		}
	}
}

func agreeTasks(t testing.TB, r *tasks) {
	t.Helper()
	agree(t, r, map[string]taskFunc{"owner": byOwner, "tag": func(_ string, v task) []string {
		return slices.Compact(slices.Sorted(slices.Values(v.Tags)))
	}}, map[string]taskFunc{"email": byEmail})
}
