//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestCreateNeverOverwrites(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	version, err := r.Create("a", 1)
	if err != nil || version != 1 {
		t.Fatalf("Create = %d, %v; want 1, nil", version, err)
	}
	_, err = r.Create("a", 2)
	var exists *shardedregistry.ExistsError
	if !errors.Is(err, shardedregistry.ErrExists) || !errors.As(err, &exists) {
		t.Fatalf("second Create = %v, want an ExistsError", err)
	}
	if want := (shardedregistry.ExistsError{Given: "a", Stored: "a", Version: 1}); *exists != want {
		t.Errorf("second Create = %+v, want %+v", *exists, want)
	}
	if want := "shardedregistry: key exists: a at version 1"; err.Error() != want {
		t.Errorf("its text is %q, want %q", err, want)
	}
	wantValue(t, &r, "a", 1)
}

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

func TestUpdate(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	e, err := r.Update("a", func(v int) (int, error) { return v + 10, nil })
	if want := (shardedregistry.Entry[string, int]{Key: "a", Value: 11, Version: 2}); err != nil || e != want {
		t.Errorf("Update = %v, %v; want %v", e, err, want)
	}
	e, err = r.Update("a", func(int) (int, error) { return 99, errTest })
	if err != errTest || e.Version != 0 {
		t.Errorf("Update with an error = %v, %v; want the error as it is", e, err)
	}
	wantValue(t, &r, "a", 11)
}

func TestUpdateIf(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	version := mustPut(t, &r, "a", 1)
	next, err := r.UpdateIf("a", version, 2)
	if err != nil || next != version+1 {
		t.Fatalf("UpdateIf = %d, %v; want %d, nil", next, err, version+1)
	}
	none, err := r.UpdateIf("a", version, 3)
	if wantConflict(t, err, version+1, version); none != 0 {
		t.Errorf("UpdateIf returned version %d beside a conflict", none)
	}
	wantConflict(t, r.DeleteIf("a", version), version+1, version)
	wantValue(t, &r, "a", 2)
	if err := r.DeleteIf("a", next); err != nil {
		t.Fatalf("DeleteIf = %v", err)
	}
	_, err = r.UpdateIf("a", next, 4)
	wantIs(t, "UpdateIf of a deleted key", err, shardedregistry.ErrNotFound)
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

func TestUpsert(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	add := func(old int, exists bool) (int, error) {
		if !exists && old != 0 {
			t.Errorf("an absent key has value %d", old)
		}
		if exists {
			return old + 1, nil
		}
		return 100, nil
	}
	for i, want := range []int{100, 101, 102} {
		e, err := r.Upsert("a", add)
		if err != nil || e.Key != "a" || e.Value != want || e.Version != shardedregistry.Version(i+1) {
			t.Fatalf("Upsert = %v, %v; want value %d at version %d", e, err, want, i+1)
		}
	}
	for _, k := range []string{"a", "b"} {
		if _, err := r.Upsert(k, func(int, bool) (int, error) { return 0, errTest }); err != errTest {
			t.Errorf("Upsert(%s) = %v, want the function's error as it is", k, err)
		}
	}
	wantValue(t, &r, "a", 102)
	if _, ok := r.Get("b"); ok {
		t.Error("a failed Upsert has created its key")
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
		"Upsert": func(r *shardedregistry.Registry[string, int]) (shardedregistry.Version, error) {
			e, err := r.Upsert("a", func(_ int, exists bool) (int, error) {
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

// A registry prints without its words being looked at.
func TestString(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	if got, want := fmt.Sprint(&r), "a registry of 1 keys"; got != want {
		t.Errorf("it prints as %q, want %q", got, want)
	}
}
