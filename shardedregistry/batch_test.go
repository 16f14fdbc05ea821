//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"iter"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestCreateMany(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	mustPut(t, r, "b", 100)
	names := []string{"a", "B", "c", " ", "C", "d"}
	n, err := r.CreateMany(slicesAll(names))
	if n != 3 {
		t.Errorf("CreateMany = %d, want 3", n)
	}
	want := "shardedregistry: key exists: B, created as b, at version 1\n" +
		"shardedregistry: invalid key: a name must not be blank:  \n" +
		"shardedregistry: key exists: C, created as c, at version 1"
	if err == nil || err.Error() != want {
		t.Errorf("CreateMany = %v\nwant %s", err, want)
	}
	var invalid *shardedregistry.KeyError
	if !errors.Is(err, shardedregistry.ErrExists) || !errors.Is(err, errBlank) || !errors.As(err, &invalid) || invalid.Key != " " {
		t.Errorf("CreateMany = %v, with %v", err, invalid)
	}
	for name, v := range map[string]int{"a": 0, "b": 100, "c": 2, "d": 5} {
		wantValue(t, r, name, v)
	}
	if n, err := r.CreateMany(slicesAll([]string{"e", "f"})); n != 2 || err != nil {
		t.Errorf("CreateMany without failures = %d, %v", n, err)
	}
	if r.Len() != 6 {
		t.Errorf("Len = %d, want 6", r.Len())
	}
	wantPanic(t, "CreateMany called with a nil iterator", func() { _, _ = r.CreateMany(nil) })
}

// slicesAll yields names with their numbers.
func slicesAll(names []string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for i, name := range names {
			if !yield(name, i) {
				return
			}
		}
	}
}

// What was created stays when the iterator ends badly, and the registry works
// on.
func TestCreateManyLeaves(t *testing.T) {
	for how, exit := range leave {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		p := left(t, func() {
			_, _ = r.CreateMany(func(yield func(string, int) bool) {
				yield("a", 1)
				r.Put("b", 2)
				exit()
			})
		})
		if how == "panic" && p != "the caller's panic" {
			t.Errorf("the panic became %v", p)
		}
		if r.Len() != 2 {
			t.Errorf("%s: %d keys, want 2", how, r.Len())
		}
		within(t, func() {
			for i := range 500 {
				mustPut(t, r, key(i), i)
			}
		})
	}
}

// Batches that meet create each key once between them.
func TestStressCreateMany(t *testing.T) {
	const workers = 4
	n := iterations(3000)
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	var created atomic.Int64
	hammer(t, workers, func(worker int) {
		many, err := r.CreateMany(func(yield func(int, int) bool) {
			for i := range n {
				yield(i, worker)
			}
		})
		created.Add(int64(many))
		if err != nil && !errors.Is(err, shardedregistry.ErrExists) {
			t.Error(err)
		}
	})
	if int(created.Load()) != n || r.Len() != n {
		t.Errorf("%d were created, Len = %d; want %d", created.Load(), r.Len(), n)
	}
}

func TestDeleteMatching(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	odd := func(e shardedregistry.Entry[string, int]) bool {
		if e.Key != key(e.Value) || e.Version != 1 {
			t.Errorf("the function was given %v", e)
		}
		return e.Value%2 == 1
	}
	if n := r.DeleteMatching(odd); n != 0 {
		t.Errorf("DeleteMatching of an empty registry = %d", n)
	}
	for i := range 1000 {
		mustPut(t, &r, key(i), i)
	}
	if n := r.DeleteMatching(odd); n != 500 || r.Len() != 500 || shardedregistry.Linked(&r) != 500 {
		t.Errorf("DeleteMatching = %d, Len = %d, %d linked; want 500", n, r.Len(), shardedregistry.Linked(&r))
	}
	for k, v := range r.All() {
		if v%2 == 1 {
			t.Errorf("%s is still there", k)
		}
	}
	if n := r.DeleteMatching(odd); n != 0 {
		t.Errorf("a second DeleteMatching = %d", n)
	}
	wantPanic(t, "DeleteMatching called with a nil function", func() { r.DeleteMatching(nil) })
}

// A key that another changes while the function looks at its entry is asked
// about again, and is not deleted for what it held.
func TestDeleteMatchingIsOvertaken(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(r *shardedregistry.Registry[string, int])
		seen    []int
		deleted int
	}{
		"changed to what does not match": {func(r *shardedregistry.Registry[string, int]) { r.Put("a", 7) }, []int{1, 7}, 0},
		"changed to what matches":        {func(r *shardedregistry.Registry[string, int]) { r.Put("a", 2) }, []int{1, 2}, 1},
		"deleted":                        {func(r *shardedregistry.Registry[string, int]) { r.Delete("a") }, []int{1}, 0},
		"created again": {func(r *shardedregistry.Registry[string, int]) {
			r.Delete("a")
			r.Put("a", 2)
		}, []int{1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
			mustPut(t, r, "a", 1)
			var seen []int
			deleted := 0
			interleave(t, func(pause func()) {
				deleted = r.DeleteMatching(func(e shardedregistry.Entry[string, int]) bool {
					seen = append(seen, e.Value)
					pause()
					return e.Value < 5
				})
			}, func() { tt.change(r) })
			if !slices.Equal(seen, tt.seen) || deleted != tt.deleted {
				t.Errorf("DeleteMatching = %d after it saw %v; want %d after %v", deleted, seen, tt.deleted, tt.seen)
			}
		})
	}
}

// T7, T7b: the function may use the registry; a key that it changes each time is
// left alone in the end.
func TestDeleteMatchingCallsBack(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	for i := range 20 {
		mustPut(t, r, key(i), i)
	}
	asked, deleted := map[string]int{}, 0
	within(t, func() {
		deleted = r.DeleteMatching(func(e shardedregistry.Entry[string, int]) bool {
			asked[e.Key]++
			switch e.Key {
			case key(0):
				mustPut(t, r, e.Key, e.Value+1)
			case key(1):
				r.Delete(e.Key)
			case key(2):
				mustPut(t, r, "new "+key(r.Len()), 0)
			}
			return len(e.Key) == len(key(0))
		})
	})
	if want := shardedregistry.Patience + shardedregistry.Proofs; deleted != 18 || asked[key(0)] != want {
		t.Errorf("DeleteMatching = %d, and asked %d times about the key that it changed; want 18 and %d", deleted, asked[key(0)], want)
	}
	wantValue(t, r, key(0), shardedregistry.Patience+shardedregistry.Proofs)
	if n := shardedregistry.Suspects(r); n != 0 {
		t.Errorf("%d suspects are still listed", n)
	}
}

// T5: a function that panics or exits leaves what it was asked about.
func TestDeleteMatchingLeaves(t *testing.T) {
	for how, exit := range leave {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		mustPut(t, r, "a", 1)
		p := left(t, func() {
			r.DeleteMatching(func(shardedregistry.Entry[string, int]) bool { exit(); return true })
		})
		if how == "panic" && p != "the caller's panic" {
			t.Errorf("the panic became %v", p)
		}
		wantValue(t, r, "a", 1)
		within(t, func() {
			for i := range 1000 {
				mustPut(t, r, key(i), i)
			}
		})
	}
}

// Of several that delete all, each key is deleted once, and none that was
// changed to what nobody wants deleted.
func TestStressDeleteMatching(t *testing.T) {
	const keys = 300
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	rounds := iterations(100)
	var deleted, created atomic.Int64
	hammer(t, 4, func(worker int) {
		for range rounds {
			if worker < 2 {
				n := r.DeleteMatching(func(e shardedregistry.Entry[int, int]) bool { return e.Value >= 0 })
				deleted.Add(int64(n))
				continue
			}
			for i := range keys {
				if _, err := r.Create(i, i); err == nil {
					created.Add(1)
				}
				if i%10 == 0 && worker == 2 {
					// From here on nobody may delete it, until this makes it so.
					e, err := r.Update(i, func(int) (int, error) { return -1, nil })
					if err != nil {
						continue
					}
					if v, err := r.UpdateIf(i, e.Version, 1); err != nil {
						t.Errorf("UpdateIf of what nobody deletes = %d, %v", v, err)
					}
				}
			}
		}
	})
	if left := int(created.Load() - deleted.Load()); r.Len() != left || shardedregistry.Linked(r) != left {
		t.Errorf("%d were created and %d deleted: Len = %d, %d linked", created.Load(), deleted.Load(), r.Len(), shardedregistry.Linked(r))
	}
}

// A NaN in a batch is reported like any other key.
func TestCreateManyInvalid(t *testing.T) {
	var r shardedregistry.Registry[float64, int]
	n, err := r.CreateMany(func(yield func(float64, int) bool) { _ = yield(math.NaN(), 1) && yield(1, 1) })
	var invalid *shardedregistry.KeyError
	if n != 1 || !errors.As(err, &invalid) || !errors.Is(err, shardedregistry.ErrInvalidKey) {
		t.Errorf("CreateMany = %d, %v", n, err)
	}
}
