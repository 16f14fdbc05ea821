//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func contents[K comparable](r *shardedregistry.Registry[K, int]) map[K]int {
	return maps.Collect(r.All())
}

func TestClear(t *testing.T) {
	var r shardedregistry.Registry[int, int]
	if n := r.Clear(); n != 0 {
		t.Errorf("Clear() of the zero Registry = %d", n)
	}
	last := map[int]shardedregistry.Version{}
	for round := range 3 {
		for i := range 1000 {
			v, err := r.Create(i, round)
			if err != nil || v <= last[i] {
				t.Fatalf("round %d: Create(%d) = %d, %v after version %d", round, i, v, err, last[i])
			}
			last[i] = v + 1 // that of the deletion
		}
		if n := r.Clear(); n != 1000 {
			t.Errorf("Clear() = %d, want 1000", n)
		}
		if _, ok := r.Get(7); ok || r.Len() != 0 || len(contents(&r)) != 0 || shardedregistry.Linked(&r) != 0 {
			t.Errorf("Get finds %v; Len() = %d, %d linked", ok, r.Len(), shardedregistry.Linked(&r))
		}
	}
	if n := r.Clear(); n != 0 {
		t.Errorf("Clear() of an empty one = %d", n)
	}
}

func TestReplace(t *testing.T) {
	for _, shards := range []int{1, 8} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: shards})
		r.Put("a", 1)
		r.Put("b", 2)
		if err := r.Replace(maps.All(map[string]int{"b": 20, "c": 30})); err != nil {
			t.Fatal(err)
		}
		if got := contents(r); !maps.Equal(got, map[string]int{"b": 20, "c": 30}) || r.Len() != 2 {
			t.Errorf("there is %v, Len() = %d", got, r.Len())
		}
		if e, _ := r.Lookup("b"); e.Version != 2 {
			t.Errorf("b has version %d, want 2", e.Version)
		}
		twice := func(yield func(string, int) bool) { _ = yield("x", 1) && yield("y", 2) && yield("x", 3) }
		if err := r.Replace(twice); err != nil {
			t.Fatal(err)
		}
		if got := contents(r); !maps.Equal(got, map[string]int{"x": 3, "y": 2}) {
			t.Errorf("there is %v", got)
		}
		if err := r.Replace(maps.All(map[string]int(nil))); err != nil || r.Len() != 0 || shardedregistry.Linked(r) != 0 {
			t.Errorf("Replace by nothing: %v, Len() = %d, %d linked", err, r.Len(), shardedregistry.Linked(r))
		}
	}
}

// Replace finds each of many keys, whatever their hashes, and yielded more than once.
func TestReplaceMany(t *testing.T) {
	for name, hash := range map[string]func(int) uint64{
		"hashed": nil, "few hashes": func(k int) uint64 { return uint64(k % 7) }, "one hash": func(int) uint64 { return 1 << 63 },
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 4})
			if hash != nil {
				shardedregistry.SetHash(r, hash)
			}
			for _, keys := range [][2]int{{0, 300}, {200, 1000}, {950, 1010}, {0, 500}} {
				want := map[int]int{}
				err := r.Replace(func(yield func(int, int) bool) {
					for round := range 3 {
						for k := keys[0]; k < keys[1]; k += 1 + round {
							if want[k] = keys[1] + round; !yield(k, want[k]) {
								return
							}
						}
					}
				})
				if got := contents(r); err != nil || !maps.Equal(got, want) || r.Len() != len(want) || shardedregistry.Linked(r) != len(want) {
					t.Fatalf("%v: %v, there are %d keys, %d linked; want %d", keys, err, len(got), shardedregistry.Linked(r), len(want))
				}
			}
		})
	}
}

// A Replace that fails, panics or exits changes nothing, and holds nothing.
func TestReplaceLeavesAll(t *testing.T) {
	errOdd, errKey := errors.New("odd"), errors.New("not a name")
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Normalize: func(k string) (string, error) {
			if k == "" {
				return "", errKey
			}
			return k, nil
		},
		Check: func(_ string, v int) error {
			if v%2 == 1 {
				return errOdd
			}
			return nil
		},
		UniqueIndexes: map[string]func(string, int) []string{"value": func(_ string, v int) []string { return []string{fmt.Sprint(v)} }},
	})
	r.Put("a", 2)
	r.Put("b", 4)
	before := slices.SortedFunc(r.Entries(), func(x, y shardedregistry.Entry[string, int]) int { return x.Value - y.Value })
	pairs := func(last func(), kv ...any) iter.Seq2[string, int] {
		return func(yield func(string, int) bool) {
			for i := 0; i < len(kv); i += 2 {
				if !yield(kv[i].(string), kv[i+1].(int)) {
					return
				}
			}
			if last != nil {
				last()
			}
		}
	}
	for _, tt := range []struct {
		name    string
		entries iter.Seq2[string, int]
		key     any
		want    error
	}{
		{"invalid key", pairs(nil, "c", 6, "", 8), "", errKey},
		{"rejected value", pairs(nil, "c", 6, "d", 7), "d", errOdd},
		{"value twice", pairs(nil, "c", 6, "d", 6), "d", shardedregistry.ErrNotUnique},
		{"value of another", pairs(nil, "c", 6, "a", 4), "a", shardedregistry.ErrNotUnique},
		{"panic", pairs(func() { panic("oops") }, "c", 6), nil, nil},
		{"Goexit", pairs(runtime.Goexit, "c", 6), nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			done := make(chan bool)
			go func() {
				defer close(done)
				defer func() { recover() }()
				err = r.Replace(tt.entries)
			}()
			<-done
			var failed *shardedregistry.KeyError
			if tt.want != nil && (!errors.As(err, &failed) || failed.Key != tt.key || !errors.Is(err, tt.want)) {
				t.Errorf("Replace returns %v, want %v of %v", err, tt.want, tt.key)
			}
			after := slices.SortedFunc(r.Entries(), func(x, y shardedregistry.Entry[string, int]) int { return x.Value - y.Value })
			if !slices.Equal(before, after) || r.Len() != 2 {
				t.Errorf("there is %v, want %v; Len() = %d", after, before, r.Len())
			}
			if lists, keys, pins := shardedregistry.Pins(r); lists != 2 || keys != 2 || pins != 2 {
				t.Errorf("%d lists, %d keys, %d pins, want 2 each", lists, keys, pins)
			}
		})
	}
	normalized := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: func(k string) (string, error) { return strings.ToLower(k), nil }})
	if err := normalized.Replace(pairs(nil, "A", 1, "b", 2, "a", 3)); err != nil || normalized.Len() != 2 {
		t.Errorf("Replace = %v, Len() = %d", err, normalized.Len())
	}
	var exists *shardedregistry.ExistsError
	if _, err := normalized.Create("a", 1); !errors.As(err, &exists) || exists.Stored != "A" {
		t.Errorf("Create = %v, want the spelling that created the key", err)
	}
	mustPut(t, r, "e", 10) // neither a value nor the registry is locked
	if err := r.Replace(pairs(nil, "a", 2, "b", 8)); err != nil {
		t.Fatal(err)
	}
	if e, ok := r.LookupBy("value", "2"); !ok || e.Key != "a" {
		t.Errorf("LookupBy finds %v, %v", e, ok)
	}
	if lists, keys, pins := shardedregistry.Pins(r); lists != 2 || keys != 2 || pins != 2 {
		t.Errorf("%d lists, %d keys, %d pins, want 2 each", lists, keys, pins)
	}
}

// A key that cannot be found again is invalid.
func TestReplaceInvalidKeys(t *testing.T) {
	var floats shardedregistry.Registry[float64, int]
	floats.Put(1, 1)
	if err := floats.Replace(maps.All(map[float64]int{math.NaN(): 1})); !errors.Is(err, shardedregistry.ErrInvalidKey) {
		t.Errorf("Replace with NaN = %v", err)
	}
	var dynamic shardedregistry.Registry[any, int]
	err := dynamic.Replace(func(yield func(any, int) bool) { _ = yield("a", 1) && yield([]int{1}, 2) })
	if !errors.Is(err, shardedregistry.ErrInvalidKey) || dynamic.Len() != 0 || floats.Len() != 1 {
		t.Errorf("Replace with a slice = %v, Len() = %d and %d", err, dynamic.Len(), floats.Len())
	}
	if err := dynamic.Replace(maps.All(map[any]int{"a": 1, 2: 2})); err != nil || dynamic.Clear() != 2 {
		t.Errorf("Replace = %v", err)
	}
}

func TestReplaceNil(t *testing.T) {
	defer func() {
		if got := recover(); got != "shardedregistry: Replace called with a nil iterator" {
			t.Errorf("Replace(nil) panics with %v", got)
		}
	}()
	new(shardedregistry.Registry[int, int]).Replace(nil)
}

// Functions of the user's may call Clear and Replace, and what calls them finds that its
// key has changed.
func TestClearFromFunctions(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	r.Put("a", 1)
	runs := 0
	_, err := r.Update("a", func(v int) (int, error) {
		runs++
		r.Clear()
		return v + 1, nil
	})
	if !errors.Is(err, shardedregistry.ErrNotFound) || runs != 1 {
		t.Errorf("Update = %v after %d runs", err, runs)
	}
	_, err = createOrUpdate(&r, "a", func(v int, _ bool) (int, error) {
		return v, r.Replace(maps.All(map[string]int{"a": v + 1}))
	})
	if !errors.Is(err, shardedregistry.ErrTooManyRetries) {
		t.Errorf("Compute that always replaces its key = %v", err)
	}
	r.Clear()
	err = r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
		tx.Get("absent")
		r.Clear()
		return tx.Put("b", 2)
	})
	if err != nil {
		t.Errorf("Transact = %v", err)
	}
	err = r.Replace(func(yield func(string, int) bool) {
		for k, v := range r.All() {
			r.Clear()
			if !yield(k, v+1) {
				return
			}
		}
	})
	if got := contents(&r); err != nil || !maps.Equal(got, map[string]int{"b": 3}) {
		t.Errorf("Replace = %v, there is %v", err, got)
	}
	for range r.All() {
		r.Clear()
	}
	if r.Len() != 0 {
		t.Errorf("Len() = %d", r.Len())
	}
}

func TestClearIsSeen(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{History: 64,
		Indexes: map[string]func(string, int) []string{"parity": func(_ string, v int) []string { return []string{fmt.Sprint(v % 2)} }}})
	r.Put("a", 1)
	r.Put("b", 2)
	from := r.Snapshot().Revision()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	type seen map[string][]shardedregistry.Event[string, int]
	want := seen{
		"a": {{Key: "a", Value: 1, Version: 2, Deleted: true}},
		"b": {{Key: "b", Value: 4, Version: 2}},
		"c": {{Key: "c", Value: 6, Version: 1}},
	}
	if err := r.Replace(maps.All(map[string]int{"b": 4, "c": 6})); err != nil {
		t.Fatal(err)
	}
	logged := seen{}
	n := 0
	for e, err := range r.WatchFrom(ctx, from) {
		if err != nil {
			t.Fatal(err)
		}
		logged[e.Key] = append(logged[e.Key], e.Event)
		if n++; n == 3 {
			break
		}
	}
	for name, got := range map[string]seen{"WatchFrom": logged} {
		for k := range want {
			g := got[k]
			if !slices.Equal(g, want[k]) {
				t.Errorf("%s tells of %s: %v, want %v", name, k, g, want[k])
			}
		}
	}
	even := 0
	for range r.ByIndex("parity", "0") {
		even++
	}
	if even != 2 {
		t.Errorf("%d even values, want 2", even)
	}
	if lists, keys, pins := shardedregistry.Pins(r); lists != 1 || keys != 2 || pins != 2 {
		t.Errorf("%d lists, %d keys, %d pins", lists, keys, pins)
	}
}
