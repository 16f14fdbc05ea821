//go:build !modelcheck

package shardedregistry_test

import (
	"math"
	"runtime"
	"testing"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestRef(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	ref := r.Ref(" Backup ")
	copied := ref
	if v, ok := ref.Get(); ok || v != 0 {
		t.Errorf("Get of an absent key = %v, %v", v, ok)
	}
	if _, err := ref.Create(1); err != nil {
		t.Fatal(err)
	}
	_, err := copied.Create(2)
	if want := "shardedregistry: key exists:  Backup  at version 1"; err == nil || err.Error() != want {
		t.Errorf("Create = %v, want %q", err, want)
	}
	if v, ok := copied.Get(); !ok || v != 1 {
		t.Errorf("Get = %v, %v", v, ok)
	}
	e, err := ref.Update(func(v int) (int, error) { return v + 10, nil })
	if want := (shardedregistry.Entry[string, int]{Key: "backup", Value: 11, Version: 2}); err != nil || e != want {
		t.Errorf("Update = %v, %v; want %v", e, err, want)
	}
	if got, ok := ref.Lookup(); !ok || got != e {
		t.Errorf("Lookup = %v, %v; want %v", got, ok, e)
	}
	if v, err := ref.UpdateIf(2, 12); err != nil || v != 3 {
		t.Errorf("UpdateIf = %v, %v", v, err)
	}
	_, err = ref.UpdateIf(2, 13)
	wantConflict(t, err, 3, 2)
	if v, err := ref.Put(14); err != nil || v != 4 {
		t.Errorf("Put = %v, %v", v, err)
	}
	e, err = ref.Upsert(func(v int, exists bool) (int, error) { return v + 1, nil })
	if err != nil || e.Value != 15 {
		t.Errorf("Upsert = %v, %v", e, err)
	}
	if v, created, err := ref.GetOrCreate(answer(9, nil)); v != 15 || created || err != nil {
		t.Errorf("GetOrCreate = %v, %v, %v", v, created, err)
	}
	wantValue(t, r, "BACKUP", 15)
	wantConflict(t, ref.DeleteIf(4), 5, 4)
	if err := ref.DeleteIf(5); err != nil {
		t.Errorf("DeleteIf = %v", err)
	}
	if e, ok := ref.Delete(); ok {
		t.Errorf("Delete of a deleted key = %v", e)
	}
	wantIs(t, "UpdateIf", onlyError(ref.UpdateIf(5, 1)), shardedregistry.ErrNotFound)
	wantIs(t, "DeleteIf", ref.DeleteIf(5), shardedregistry.ErrNotFound)
	_, err = ref.Update(func(v int) (int, error) { return v, nil })
	wantIs(t, "Update", err, shardedregistry.ErrNotFound)
	mustPut(t, r, "backup", 20)
	if e, ok := ref.Delete(); !ok || e.Key != "backup" || e.Value != 20 {
		t.Errorf("Delete = %v, %v", e, ok)
	}
	wantPanic(t, "Update called with a nil function", func() { _, _ = ref.Update(nil) })
	wantPanic(t, "Upsert called with a nil function", func() { _, _ = ref.Upsert(nil) })
	if r.Len() != 0 || shardedregistry.Linked(r) != 0 {
		t.Errorf("%d keys, %d linked", r.Len(), shardedregistry.Linked(r))
	}
}

// A Ref follows its key from one life to the next, and all copies with it.
func TestRefFollowsItsKey(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	ref := r.Ref("a")
	copied := ref
	for life := range 5 {
		mustPut(t, &r, "a", life)
		for range 3 {
			if v, ok := ref.Get(); !ok || v != life {
				t.Fatalf("life %d: Get = %v, %v", life, v, ok)
			}
		}
		if !shardedregistry.Remembers(copied) {
			t.Error("a copy does not know what the Ref has found")
		}
		r.Delete("a")
		if life%2 == 0 {
			continue // the next life begins before the Ref is used
		}
		if v, ok := copied.Get(); ok {
			t.Fatalf("Get of a deleted key = %v", v)
		}
		if shardedregistry.Remembers(ref) {
			t.Error("the Ref still remembers the life that is over")
		}
	}
}

// A dead cell that its deleter has not unlinked is absent through a Ref that
// remembers it, and through one that meets it.
func TestRefOfADeletionThatStalls(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	ref := r.Ref("a")
	mustPut(t, &r, "a", 1)
	ref.Get()
	rest := shardedregistry.Kill(&r, "a")
	for _, ref := range []shardedregistry.Ref[string, int]{ref, r.Ref("a")} {
		if v, ok := ref.Get(); ok {
			t.Errorf("Get of a dead key = %v", v)
		}
		if e, ok := ref.Lookup(); ok {
			t.Errorf("Lookup of a dead key = %v", e)
		}
		if e, ok := ref.Delete(); ok {
			t.Errorf("Delete of a dead key = %v", e)
		}
		if shardedregistry.Remembers(ref) {
			t.Error("the Ref remembers a dead cell")
		}
	}
	if _, err := ref.Create(7); err != nil {
		t.Errorf("Create over a dead cell = %v", err)
	}
	rest()
	if v, ok := ref.Get(); !ok || v != 7 {
		t.Errorf("Get = %v, %v; want 7", v, ok)
	}
}

// A Ref of no key, and one of no registry, find nothing and say why.
func TestRefInvalid(t *testing.T) {
	named := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	for name, ref := range map[string]shardedregistry.Ref[string, int]{
		"blank": named.Ref(" "),
		"zero":  {},
	} {
		t.Run(name, func(t *testing.T) { wantInvalidRef(t, ref) })
	}
	t.Run("NaN", func(t *testing.T) { wantInvalidRef(t, new(shardedregistry.Registry[float64, int]).Ref(math.NaN())) })
	t.Run("slice", func(t *testing.T) { wantInvalidRef(t, new(shardedregistry.Registry[any, int]).Ref([]int{1})) })
	if _, err := named.Ref(" ").Put(1); err == nil || named.Len() != 0 {
		t.Errorf("Put = %v, %d keys", err, named.Len())
	} else {
		wantIs(t, "the normaliser's own error", err, errBlank)
	}
}

func wantInvalidRef[K comparable](t *testing.T, ref shardedregistry.Ref[K, int]) {
	t.Helper()
	errs, found := everyMethodOf(ref)
	for method, err := range errs {
		wantIs(t, method, err, shardedregistry.ErrInvalidKey)
	}
	for method, ok := range found {
		if ok {
			t.Errorf("%s finds an invalid key", method)
		}
	}
}

// A Ref whose key is gone keeps none of its values, also if a snapshot needed
// them for a while.
func TestRefKeepsNoValue(t *testing.T) {
	for name, during := range map[string]bool{"quiet": false, "while a snapshot is taken": true} {
		t.Run(name, func(t *testing.T) {
			var r shardedregistry.Registry[string, *[64]byte]
			value := new([64]byte)
			gone := weak.Make(value)
			ref := r.Ref("a")
			if _, err := ref.Create(value); err != nil {
				t.Fatal(err)
			}
			value = nil
			ref.Get()
			leave := func() {}
			if during {
				taker := shardedregistry.Join(&r)
				leave = func() { taker.Leave() }
			}
			r.Delete("a")
			if leave(); !shardedregistry.Remembers(ref) {
				t.Error("the Ref has forgotten its cell by itself: the test does not see what it should")
			}
			collected(t, func() bool { return gone.Value() == nil })
			runtime.KeepAlive(ref)
		})
	}
}

// collected runs the garbage collector until it has done what is wanted.
func collected(t *testing.T, done func() bool) {
	t.Helper()
	for range 20 {
		if runtime.GC(); done() {
			return
		}
	}
	t.Error("it is still kept")
}

// What is read through Refs while a key comes and goes is what it holds: never
// older than what the same goroutine has seen, or has stored itself.
func TestStressRef(t *testing.T) {
	const workers, keys = 4, 2
	n := iterations(5000)
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	var refs [keys]shardedregistry.Ref[string, int]
	for k := range refs {
		refs[k] = r.Ref(key(k))
	}
	hammer(t, workers, func(worker int) {
		var seen [keys]shardedregistry.Version
		for i := range n {
			k := (i / 3) % keys
			ref := refs[k]
			saw := func(what string, v shardedregistry.Version) {
				if v < seen[k] {
					t.Errorf("%s went back from version %d to %d", what, seen[k], v)
				}
				seen[k] = v
			}
			switch (i + worker) % 5 {
			case 0:
				if v, err := ref.Create(i); err == nil {
					saw("Create", v)
				}
			case 1:
				if e, err := ref.Update(func(v int) (int, error) { return v + 1, nil }); err == nil {
					saw("Update", e.Version)
				}
			case 2:
				if e, ok := ref.Delete(); ok {
					saw("Delete", e.Version+1)
				}
			case 3:
				if v, err := ref.Put(i); err != nil {
					t.Error(err)
				} else {
					saw("Put", v)
				}
			}
			if e, ok := ref.Lookup(); ok {
				saw("Lookup", e.Version)
			}
			if e, ok := r.Lookup(key(k)); ok {
				saw("Lookup of the registry", e.Version)
			}
		}
	})
	for k, ref := range refs {
		got, ok := ref.Lookup()
		want, there := r.Lookup(key(k))
		if ok != there || got != want {
			t.Errorf("in the end the Ref finds %v, %v, and the registry %v, %v", got, ok, want, there)
		}
	}
}
