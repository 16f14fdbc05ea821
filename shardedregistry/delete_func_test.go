//go:build !modelcheck

package shardedregistry_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestDeleteFunc(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	odd := func(k string, v int) bool {
		if k != key(v) {
			t.Errorf("the function was given %s, %d", k, v)
		}
		return v%2 == 1
	}
	if n := r.DeleteFunc(odd); n != 0 {
		t.Errorf("DeleteFunc of an empty registry = %d", n)
	}
	for i := range 1000 {
		mustPut(t, &r, key(i), i)
	}
	if n := r.DeleteFunc(odd); n != 500 || r.Len() != 500 || shardedregistry.Linked(&r) != 500 {
		t.Errorf("DeleteFunc = %d, Len = %d, %d linked; want 500", n, r.Len(), shardedregistry.Linked(&r))
	}
	for k, v := range r.All() {
		if v%2 == 1 {
			t.Errorf("%s is still there", k)
		}
	}
	if n := r.DeleteFunc(odd); n != 0 {
		t.Errorf("a second DeleteFunc = %d", n)
	}
	wantPanic(t, "DeleteFunc called with a nil function", func() { r.DeleteFunc(nil) })
}

// A key that another changes while the function looks at its entry is asked
// about again, and is not deleted for what it held.
func TestDeleteFuncIsOvertaken(t *testing.T) {
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
				deleted = r.DeleteFunc(func(_ string, v int) bool {
					seen = append(seen, v)
					pause()
					return v < 5
				})
			}, func() { tt.change(r) })
			if !slices.Equal(seen, tt.seen) || deleted != tt.deleted {
				t.Errorf("DeleteFunc = %d after it saw %v; want %d after %v", deleted, seen, tt.deleted, tt.seen)
			}
		})
	}
}

// T7, T7b: the function may use the registry; a key that it changes each time is
// left alone in the end.
func TestDeleteFuncCallsBack(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	for i := range 20 {
		mustPut(t, r, key(i), i)
	}
	asked, deleted := map[string]int{}, 0
	within(t, func() {
		deleted = r.DeleteFunc(func(k string, v int) bool {
			asked[k]++
			switch k {
			case key(0):
				mustPut(t, r, k, v+1)
			case key(1):
				r.Delete(k)
			case key(2):
				mustPut(t, r, "new "+key(r.Len()), 0)
			}
			return len(k) == len(key(0))
		})
	})
	if want := shardedregistry.MaxAttempts; deleted != 18 || asked[key(0)] != want {
		t.Errorf("DeleteFunc = %d, and asked %d times about the key that it changed; want 18 and %d", deleted, asked[key(0)], want)
	}
	wantValue(t, r, key(0), shardedregistry.MaxAttempts)
}

// T5: a function that panics or exits leaves what it was asked about.
func TestDeleteFuncLeaves(t *testing.T) {
	for how, exit := range leave {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		mustPut(t, r, "a", 1)
		p := left(t, func() {
			r.DeleteFunc(func(string, int) bool { exit(); return true })
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
func TestStressDeleteFunc(t *testing.T) {
	const keys = 300
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	rounds := iterations(100)
	var deleted, created atomic.Int64
	hammer(t, 4, func(worker int) {
		for range rounds {
			if worker < 2 {
				n := r.DeleteFunc(func(_, v int) bool { return v >= 0 })
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
