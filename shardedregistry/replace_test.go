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
		if err := r.Replace(maps.All(map[string]int{"b": 20, "c": 30}), nil); err != nil {
			t.Fatal(err)
		}
		if got := contents(r); !maps.Equal(got, map[string]int{"b": 20, "c": 30}) || r.Len() != 2 {
			t.Errorf("there is %v, Len() = %d", got, r.Len())
		}
		if e, _ := r.Lookup("b"); e.Version != 2 {
			t.Errorf("b has version %d, want 2", e.Version)
		}
		twice := func(yield func(string, int) bool) { _ = yield("x", 1) && yield("y", 2) && yield("x", 3) }
		if err := r.Replace(twice, nil); err != nil {
			t.Fatal(err)
		}
		if got := contents(r); !maps.Equal(got, map[string]int{"x": 3, "y": 2}) {
			t.Errorf("there is %v", got)
		}
		if err := r.Replace(maps.All(map[string]int(nil)), nil); err != nil || r.Len() != 0 || shardedregistry.Linked(r) != 0 {
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
				}, nil)
				if got := contents(r); err != nil || !maps.Equal(got, want) || r.Len() != len(want) || shardedregistry.Linked(r) != len(want) {
					t.Fatalf("%v: %v, there are %d keys, %d linked; want %d", keys, err, len(got), shardedregistry.Linked(r), len(want))
				}
			}
		})
	}
}

// yielding yields keys and values, and then calls last.
func yielding(last func(), kv ...any) iter.Seq2[string, int] {
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

// Keys that equal calls the same stay as they are, and no loop is told of them.
func TestReplaceSkipsEqual(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{History: 16})
	for k, v := range map[string]int{"same": 10, "other": 20, "gone": 30} {
		mustPut(t, r, k, v)
	}
	s := shardedregistry.OpenFeed(r)
	asked := map[[2]int]int{}
	err := r.Replace(yielding(nil, "same", 13, "other", 40, "new", 50), func(a, b int) bool {
		asked[[2]int{a, b}]++
		return a/10 == b/10
	})
	if err != nil || !maps.Equal(asked, map[[2]int]int{{10, 13}: 1, {20, 40}: 1}) {
		t.Errorf("Replace = %v, equal was asked %v", err, asked)
	}
	if got := contents(r); !maps.Equal(got, map[string]int{"same": 10, "other": 40, "new": 50}) {
		t.Errorf("there is %v", got)
	}
	if e, _ := r.Lookup("same"); e.Version != 1 {
		t.Errorf("what is the same has version %d", e.Version)
	}
	created, _ := r.Lookup("new")
	events, _ := s.Drain()
	wantEvents(t, events, event{"gone", 30, 2, true, false}, event{"other", 40, 2, false, false}, event{"new", 50, created.Version, false, false})
}

// A Replace with an invalid key, or whose iterator panics or exits, changes nothing; values that
// are rejected leave their keys as they are, and the others are stored.
func TestReplaceFails(t *testing.T) {
	errOdd, errKey := errors.New("odd"), errors.New("not a name")
	type contents = map[string]int
	before := contents{"a": 2, "b": 4}
	for _, tt := range []struct {
		name    string
		entries iter.Seq2[string, int]
		failed  map[any]error
		want    contents
	}{
		{"invalid key", yielding(nil, "c", 6, "", 8), map[any]error{"": errKey}, before},
		{"rejected values", yielding(nil, "a", 3, "c", 6, "d", 7), map[any]error{"a": errOdd, "d": errOdd}, contents{"a": 2, "c": 6}},
		{"value twice", yielding(nil, "c", 6, "d", 6), map[any]error{"d": shardedregistry.ErrNotUnique}, contents{"c": 6}},
		{"value of one that stays", yielding(nil, "a", 4, "b", 2), map[any]error{"a": shardedregistry.ErrNotUnique, "b": shardedregistry.ErrNotUnique}, before},
		{"value of one that is deleted", yielding(nil, "a", 4), nil, contents{"a": 4}},
		{"panic", yielding(func() { panic("oops") }, "c", 6), nil, before},
		{"Goexit", yielding(runtime.Goexit, "c", 6), nil, before},
	} {
		t.Run(tt.name, func(t *testing.T) {
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
			for k, v := range before {
				mustPut(t, r, k, v)
			}
			var err error
			left(t, func() { err = r.Replace(tt.entries, nil) })
			all := []error{err}
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				all = joined.Unwrap()
			}
			got := map[any]error{}
			for _, err := range all {
				if failed := (*shardedregistry.KeyError)(nil); errors.As(err, &failed) {
					got[failed.Key] = failed.Err
				}
			}
			for k, want := range tt.failed {
				if !errors.Is(got[k], want) {
					t.Errorf("Replace returns %v for %q, want %v", got[k], k, want)
				}
			}
			if len(got) != len(tt.failed) || (err == nil) != (tt.failed == nil) {
				t.Errorf("Replace = %v", err)
			}
			if now := maps.Collect(r.All()); !maps.Equal(now, tt.want) || r.Len() != len(tt.want) {
				t.Errorf("there is %v, want %v; Len() = %d", now, tt.want, r.Len())
			}
			if lists, keys, pins := shardedregistry.Pins(r); lists != len(tt.want) || keys != lists || pins != lists {
				t.Errorf("%d lists, %d keys, %d pins, want %d each", lists, keys, pins, len(tt.want))
			}
		})
	}
}

// A key that Replace creates is known by the spelling that was yielded first.
func TestReplaceSpelling(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	if err := r.Replace(yielding(nil, "A", 1, "b", 2, "a", 3), nil); err != nil || r.Len() != 2 {
		t.Errorf("Replace = %v, Len() = %d", err, r.Len())
	}
	wantValue(t, r, "a", 3)
	var exists *shardedregistry.ExistsError
	if _, err := r.Create("a", 1); !errors.As(err, &exists) || exists.Stored != "A" {
		t.Errorf("Create = %v, want the spelling that created the key", err)
	}
}

// What equal does to the registry, and how it leaves, concerns the keys that come later.
func TestReplaceEqualLeaves(t *testing.T) {
	for how, exit := range leave {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		mustPut(t, r, "a", 1)
		mustPut(t, r, "b", 2)
		p := left(t, func() {
			r.Replace(yielding(nil, "a", 10, "b", 20), func(a, _ int) bool {
				if a == 2 {
					exit()
				}
				return false
			})
		})
		if how == "panic" && p != "the caller's panic" {
			t.Errorf("the panic became %v", p)
		}
		if got := contents(r); !maps.Equal(got, map[string]int{"a": 10, "b": 2}) {
			t.Errorf("%s: there is %v", how, got)
		}
	}
}

// A key that cannot be found again is invalid.
func TestReplaceInvalidKeys(t *testing.T) {
	var floats shardedregistry.Registry[float64, int]
	floats.Put(1, 1)
	if err := floats.Replace(maps.All(map[float64]int{math.NaN(): 1}), nil); !errors.Is(err, shardedregistry.ErrInvalidKey) {
		t.Errorf("Replace with NaN = %v", err)
	}
	var dynamic shardedregistry.Registry[any, int]
	err := dynamic.Replace(func(yield func(any, int) bool) { _ = yield("a", 1) && yield([]int{1}, 2) }, nil)
	if !errors.Is(err, shardedregistry.ErrInvalidKey) || dynamic.Len() != 0 || floats.Len() != 1 {
		t.Errorf("Replace with a slice = %v, Len() = %d and %d", err, dynamic.Len(), floats.Len())
	}
	if err := dynamic.Replace(maps.All(map[any]int{"a": 1, 2: 2}), nil); err != nil || dynamic.Clear() != 2 {
		t.Errorf("Replace = %v", err)
	}
}

func TestReplaceNil(t *testing.T) {
	defer func() {
		if got := recover(); got != "shardedregistry: Replace called with a nil iterator" {
			t.Errorf("Replace(nil) panics with %v", got)
		}
	}()
	new(shardedregistry.Registry[int, int]).Replace(nil, nil)
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
		return v, r.Replace(maps.All(map[string]int{"a": v + 1}), nil)
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
	}, nil)
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
	if err := r.Replace(maps.All(map[string]int{"b": 4, "c": 6}), nil); err != nil {
		t.Fatal(err)
	}
	created, _ := r.Lookup("c") // above what was deleted of its shard
	want["c"][0].Version = created.Version
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

// What Clear and Replace leave beside others is what others have stored, or they; loops, indexes
// and counters agree.
func TestStressReplace(t *testing.T) {
	const keys = 40
	parity := map[string]func(int, int) []string{"parity": func(k, _ int) []string { return []string{fmt.Sprint(k % 2)} }}
	for name, config := range map[string]shardedregistry.Config[int, int]{
		"plain": {Shards: 2},
		"all":   {Indexes: parity, History: 16},
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(config)
			w := shardedregistry.Subscribe(r)
			hammer(t, 4, func(worker int) {
				for i := range iterations(300) {
					switch n := 4*i + worker; {
					case worker == 3:
						r.Put(i%(2*keys), -n)
						r.Delete((i + 7) % (2 * keys))
					case i%8 == 0:
						r.Clear()
					default:
						err := r.Replace(func(yield func(int, int) bool) {
							for k := n % 3; k < keys; k += 3 {
								if !yield(k, n) {
									return
								}
							}
						}, func(a, b int) bool { return a == b })
						if err != nil {
							t.Error(err)
						}
					}
				}
			})
			watched := map[int]int{}
			apply(watched, w.Drain())
			w.Leave()
			there := contents(r)
			if !maps.Equal(watched, there) || r.Len() != len(there) {
				t.Errorf("there is %v, watched %v, Len() = %d", there, watched, r.Len())
			}
			if name == "all" {
				n := 0
				for range r.ByIndex("parity", "0") {
					n++
				}
				for range r.ByIndex("parity", "1") {
					n++
				}
				if n != len(there) {
					t.Errorf("the index has %d keys of %d", n, len(there))
				}
			}
			if n := r.Clear(); n != len(there) || shardedregistry.Linked(r) != 0 {
				t.Errorf("Clear() = %d, %d linked", n, shardedregistry.Linked(r))
			}
			wantTraces(t, r)
		})
	}
}
