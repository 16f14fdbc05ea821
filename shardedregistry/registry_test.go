//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestEmpty(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	if v, ok := r.Get("a"); ok || v != 0 {
		t.Errorf("Get = %v, %v", v, ok)
	}
	if e, ok := r.Lookup("a"); ok || e.Version != 0 {
		t.Errorf("Lookup = %v, %v", e, ok)
	}
	if e, ok := r.Delete("a"); ok || e.Version != 0 {
		t.Errorf("Delete = %v, %v", e, ok)
	}
	for k := range r.All() {
		t.Errorf("All yielded %v", k)
	}
	if n := r.Len(); n != 0 {
		t.Errorf("Len = %d", n)
	}
	_, err := r.Update("a", func(int) (int, error) { t.Error("Update ran its function"); return 0, nil })
	wantIs(t, "Update", err, shardedregistry.ErrNotFound)
	_, err = r.UpdateIf("a", 0, 1)
	wantIs(t, "UpdateIf", err, shardedregistry.ErrNotFound)
	wantIs(t, "DeleteIf", r.DeleteIf("a", 0), shardedregistry.ErrNotFound)
}

// wantIs fails the test unless err is target.
func wantIs(t testing.TB, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: error %v, want %v", what, err, target)
	}
}

func wantConflict(t testing.TB, err error, have, want shardedregistry.Version) {
	t.Helper()
	var conflict *shardedregistry.ConflictError
	if !errors.Is(err, shardedregistry.ErrConflict) || !errors.As(err, &conflict) {
		t.Fatalf("error %v, want a ConflictError", err)
	}
	if conflict.Have != have || conflict.Want != want {
		t.Errorf("conflict %+v, want have %d, want %d", *conflict, have, want)
	}
	if !strings.Contains(err.Error(), "have ") {
		t.Errorf("its text is %q, without the versions", err)
	}
}

func TestDelete(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	mustPut(t, &r, "a", 2)
	e, ok := r.Delete("a")
	if want := (shardedregistry.Entry[string, int]{Key: "a", Value: 2, Version: 2}); !ok || e != want {
		t.Errorf("Delete = %v, %v; want %v", e, ok, want)
	}
	if _, ok := r.Delete("a"); ok {
		t.Error("a second Delete deleted too")
	}
	if n := shardedregistry.Linked(&r); n != 0 {
		t.Errorf("%d cells are still linked", n)
	}
}

// T27: versions strictly increase, also across deletion and re-creation.
func TestVersionsIncreaseForEver(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	last := map[string]shardedregistry.Version{}
	check := func(k string, v shardedregistry.Version) {
		t.Helper()
		if v <= last[k] {
			t.Fatalf("%s has version %d after version %d", k, v, last[k])
		}
		last[k] = v
	}
	for round := range 50 {
		for _, k := range []string{"a", "b"} {
			v, err := r.Create(k, round)
			if err != nil {
				t.Fatal(err)
			}
			check(k, v)
			for i := range round % 4 {
				check(k, mustPut(t, r, k, i))
			}
			if e, _ := r.Delete(k); e.Version != last[k] {
				t.Fatalf("Delete returned version %d, want %d", e.Version, last[k])
			}
		}
	}
}

// An operation that finds a dead cell that its deleter has not unlinked yet
// treats the key as absent, and a creation replaces the cell, which the
// deleter must then leave alone.
func TestDeleterStalls(t *testing.T) {
	for name, create := range map[string]func(*shardedregistry.Registry[string, int]) (shardedregistry.Version, error){
		"Create": func(r *shardedregistry.Registry[string, int]) (shardedregistry.Version, error) {
			return r.Create("a", 7)
		},
		"Put": func(r *shardedregistry.Registry[string, int]) (shardedregistry.Version, error) {
			return r.Put("a", 7)
		},
		"Compute": func(r *shardedregistry.Registry[string, int]) (shardedregistry.Version, error) {
			e, err := createOrUpdate(r, "a", func(_ int, exists bool) (int, error) {
				if exists {
					t.Error("a dead key exists")
				}
				return 7, nil
			})
			return e.Version, err
		},
	} {
		var r shardedregistry.Registry[string, int]
		version := mustPut(t, &r, "a", 1)
		rest := shardedregistry.Kill(&r, "a")
		if _, ok := r.Get("a"); ok {
			t.Error("Get finds a dead key")
		}
		if _, ok := r.Delete("a"); ok {
			t.Error("Delete deletes a dead key")
		}
		_, err := r.Update("a", func(v int) (int, error) { return v, nil })
		wantIs(t, "Update of a dead key", err, shardedregistry.ErrNotFound)
		_, err = r.UpdateIf("a", version+1, 1)
		wantIs(t, "UpdateIf of a dead key", err, shardedregistry.ErrNotFound)
		wantIs(t, "DeleteIf of a dead key", r.DeleteIf("a", version+1), shardedregistry.ErrNotFound)
		for k := range r.All() {
			t.Errorf("All yields the dead key %s", k)
		}
		if n := r.Len(); n != 0 {
			t.Errorf("Len = %d with one dead key", n)
		}

		again, err := create(&r)
		if err != nil || again <= version+1 {
			t.Errorf("%s = %d, %v; want a version above the deletion's, %d", name, again, err, version+1)
		}
		rest()
		wantValue(t, &r, "a", 7)
		if n := r.Len(); n != 1 {
			t.Errorf("Len = %d, want 1", n)
		}
	}
}

func counts(keys []string) map[string]int {
	n := map[string]int{}
	for _, k := range keys {
		n[k]++
	}
	return n
}

// T23: values without a size still have records of their own.
func TestValuesWithoutSize(t *testing.T) {
	var r shardedregistry.Registry[string, struct{}]
	a, b := mustPut(t, &r, "a", struct{}{}), mustPut(t, &r, "a", struct{}{})
	if a == b {
		t.Errorf("two Puts have version %d", a)
	}
	_, err := r.UpdateIf("a", a, struct{}{})
	wantConflict(t, err, b, a)
	if _, ok := r.Delete("a"); !ok {
		t.Error("Delete found nothing")
	}
	if _, ok := r.Get("a"); ok {
		t.Error("Get finds a deleted key")
	}
}

// T14: single-threaded delete, create and get of every key.
func TestDeleteCreateGet(t *testing.T) {
	var r shardedregistry.Registry[int, int]
	const keys = 3000
	for round := range 3 {
		for i := range keys {
			if _, err := r.Create(i, i+round); err != nil {
				t.Fatal(err)
			}
		}
		for i := range keys {
			wantValue(t, &r, i, i+round)
			r.Delete(i)
			if _, ok := r.Get(i); ok {
				t.Fatalf("Get(%d) finds a deleted key", i)
			}
		}
		if n := r.Len(); n != 0 {
			t.Fatalf("Len = %d after everything was deleted", n)
		}
	}
	if n := shardedregistry.Linked(&r); n != 0 {
		t.Errorf("%d cells are still linked", n)
	}
}
