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
	for _, ref := range []shardedregistry.Ref[string, int]{ref, copied} {
		wantAbsent(t, ref)
	}
	mustPut(t, r, "BACKUP", 1)
	mustPut(t, r, "backup", 2)
	for _, ref := range []shardedregistry.Ref[string, int]{ref, copied, r.Ref("backup")} {
		for range 2 {
			if v, ok := ref.Get(); !ok || v != 2 {
				t.Errorf("Get = %v, %v", v, ok)
			}
			if e, ok := ref.Lookup(); !ok || e != (shardedregistry.Entry[string, int]{Key: "backup", Value: 2, Version: 2}) {
				t.Errorf("Lookup = %v, %v", e, ok)
			}
			if p := ref.Peek(); p == nil || *p != 2 {
				t.Errorf("Peek = %v", p)
			}
		}
	}
	r.Delete("backup")
	wantAbsent(t, ref)
}

func wantAbsent[K comparable](t *testing.T, ref shardedregistry.Ref[K, int]) {
	t.Helper()
	if v, ok := ref.Get(); ok || v != 0 {
		t.Errorf("Get of an absent key = %v, %v", v, ok)
	}
	if e, ok := ref.Lookup(); ok || e != (shardedregistry.Entry[K, int]{}) {
		t.Errorf("Lookup of an absent key = %v, %v", e, ok)
	}
	if p := ref.Peek(); p != nil {
		t.Errorf("Peek of an absent key = %v", p)
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
		wantAbsent(t, ref)
		if shardedregistry.Remembers(ref) {
			t.Error("the Ref remembers a dead cell")
		}
	}
	mustPut(t, &r, "a", 7)
	rest()
	if v, ok := ref.Get(); !ok || v != 7 {
		t.Errorf("Get = %v, %v; want 7", v, ok)
	}
}

// A Ref of no key, and one of no registry, find nothing.
func TestRefInvalid(t *testing.T) {
	named := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	wantAbsent(t, named.Ref(" "))
	wantAbsent(t, shardedregistry.Ref[string, int]{})
	wantAbsent(t, new(shardedregistry.Registry[float64, int]).Ref(math.NaN()))
	wantAbsent(t, new(shardedregistry.Registry[any, int]).Ref([]int{1}))
}

// A Ref whose key is gone keeps none of its values once it is used, also if a snapshot needed
// them for a while.
func TestRefKeepsNoValue(t *testing.T) {
	for name, during := range map[string]bool{"quiet": false, "while a snapshot is taken": true} {
		t.Run(name, func(t *testing.T) {
			var r shardedregistry.Registry[string, *[64]byte]
			value := new([64]byte)
			gone := weak.Make(value)
			ref := r.Ref("a")
			mustPut(t, &r, "a", value)
			value = nil
			ref.Get()
			leave := func() {}
			if during {
				taking := shardedregistry.Join(&r)
				leave = func() { taking.Leave() }
			}
			r.Delete("a")
			if leave(); !shardedregistry.Remembers(ref) {
				t.Error("the Ref has forgotten its cell by itself: the test does not see what it should")
			}
			if _, ok := ref.Get(); ok {
				t.Error("the key is there")
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
				if v, err := r.Create(key(k), i); err == nil {
					saw("Create", v)
				}
			case 1:
				if e, err := r.Update(key(k), func(v int) (int, error) { return v + 1, nil }); err == nil {
					saw("Update", e.Version)
				}
			case 2:
				if e, ok := r.Delete(key(k)); ok {
					saw("Delete", e.Version+1)
				}
			case 3:
				if v, err := r.Put(key(k), i); err != nil {
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
