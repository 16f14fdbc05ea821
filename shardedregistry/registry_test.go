//go:build !modelcheck

package shardedregistry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
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

// keyed is what can be done to one key.
type keyed[K comparable] interface {
	Create(K, int) (shardedregistry.Version, error)
	Get(K) (int, bool)
	Peek(K) *int
	Lookup(K) (shardedregistry.Entry[K, int], bool)
	Put(K, int) (shardedregistry.Version, error)
	Update(K, func(int) (int, error)) (shardedregistry.Entry[K, int], error)
	UpdateIf(K, shardedregistry.Version, int) (shardedregistry.Version, error)
	Compute(K, func(int, bool) (int, shardedregistry.ComputeOp, error)) (shardedregistry.Entry[K, int], bool, error)
	GetOrCreate(K, func() (int, error)) (int, bool, error)
	Delete(K) (shardedregistry.Entry[K, int], bool)
	DeleteIf(K, shardedregistry.Version) error
}

// everyMethod calls every method that takes a key, first those that need it
// present. It panics if one returns anything else beside an error.
func everyMethod[K comparable](r keyed[K], k K) (errs map[string]error, found map[string]bool) {
	errs, found = map[string]error{}, map[string]bool{}
	returned := func(name string, err error, nothing bool) {
		if errs[name] = err; err != nil && !nothing {
			panic(fmt.Sprintf("%s returned something beside the error: %v", name, err))
		}
	}
	var none shardedregistry.Entry[K, int]
	_, found["Get"] = r.Get(k)
	found["Peek"] = r.Peek(k) != nil
	_, found["Lookup"] = r.Lookup(k)
	e, err := r.Update(k, func(v int) (int, error) { return v, nil })
	returned("Update", err, e == none)
	version, err := r.UpdateIf(k, e.Version, 1)
	returned("UpdateIf", err, version == 0)
	version, err = r.Create(k, 1)
	returned("Create", err, version == 0)
	v, created, err := r.GetOrCreate(k, answer(1, nil))
	returned("GetOrCreate", err, v == 0 && !created)
	version, err = r.Put(k, 1)
	returned("Put", err, version == 0)
	e, present, err := r.Compute(k, func(int, bool) (int, shardedregistry.ComputeOp, error) { return 1, shardedregistry.UpdateOp, nil })
	returned("Compute", err, e == none && !present)
	errs["DeleteIf"] = r.DeleteIf(k, e.Version)
	_, found["Delete"] = r.Delete(k)
	return errs, found
}

// Every method that takes a key is in the table above. Ref, Wait and Renew have tests of their own.
func TestEveryMethodIsTested(t *testing.T) {
	type name = any // unlike any other parameter's type
	tested := methods(reflect.TypeFor[keyed[name]](), nil)
	takesKey := func(f reflect.Type) bool {
		for i := 1; i < f.NumIn(); i++ {
			if in := f.In(i); in == reflect.TypeFor[name]() {
				return true
			}
		}
		return false
	}
	whole := methods(reflect.TypeFor[*shardedregistry.Registry[name, int]](), takesKey)
	want := append(slices.Clone(tested), "Ref", "Renew", "Wait")
	if !same(whole, want) {
		t.Errorf("the methods of a registry that take a key are %v, tested are %v", whole, want)
	}
}

func methods(t reflect.Type, want func(reflect.Type) bool) (names []string) {
	for i := range t.NumMethod() {
		if m := t.Method(i); want == nil || want(m.Type) {
			names = append(names, m.Name)
		}
	}
	return names
}

func same(x, y []string) bool {
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// Every method finds another spelling of a key.
func TestNormalizeInEveryMethod(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	mustPut(t, r, " Backup ", 1)
	errs, found := everyMethod(r, "BACKUP")
	wantIs(t, "Create", errs["Create"], shardedregistry.ErrExists)
	if text := errs["Create"].Error(); !strings.Contains(text, "key exists: BACKUP, created as  Backup ,") {
		t.Errorf("Create shows the key as %q", text)
	}
	delete(errs, "Create")
	for method, err := range errs {
		if err != nil {
			t.Errorf("%s does not find another spelling: %v", method, err)
		}
	}
	if !found["Get"] || !found["Peek"] || !found["Lookup"] || found["Delete"] {
		t.Errorf("found %v; want all but Delete, after DeleteIf", found)
	}
	mustPut(t, r, "backup", 1)
	if e, ok := r.Delete("bACKUP"); !ok || e.Key != "backup" {
		t.Errorf("Delete of another spelling = %v, %v", e, ok)
	}
}

// Every method normalises its key exactly once, whatever comes of it. A Ref does
// so when it is made, and never again.
func TestNormalizeOnce(t *testing.T) {
	calls := 0
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: func(k string) (string, error) { calls++; return normalize(k) }})
	for _, k := range []string{" Absent ", "Present", " "} {
		mustPut(t, r, "present", 1)
		calls = 0
		errs, found := everyMethod(r, k)
		if methods := len(errs) + len(found); calls != methods {
			t.Errorf("%q: %d methods normalised %d times", k, methods, calls)
		}
		mustPut(t, r, "present", 1)
		calls = 0
		ref := r.Ref(k)
		_, _ = ref.Get()
		_, _ = ref.Lookup()
		ref.Peek()
		if calls != 1 {
			t.Errorf("%q: a Ref normalised %d times", k, calls)
		}
	}
}

// Stored keys are as normalised, and using them as keys changes nothing: what a
// loop yields is found, deleted, and created again under the same name.
func TestNormalizeIsIdempotent(t *testing.T) {
	spellings := []string{"a", " A", "b ", "B\t", "\u212A", "É", "\u00a0x", "Y y", "z\x00 "}
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	stored := map[string]bool{}
	for _, k := range spellings {
		e, err := createOrUpdate(r, k, func(n int, _ bool) (int, error) { return n + 1, nil })
		if err != nil {
			t.Fatal(err)
		}
		stored[e.Key] = true
	}
	if r.Len() != len(stored) || len(stored) != len(spellings)-2 {
		t.Errorf("%d keys of %v, Len = %d", len(stored), slices.Collect(maps.Keys(stored)), r.Len())
	}
	for k := range stored {
		e, ok := r.Lookup(k)
		if !ok || e.Key != k {
			t.Errorf("Lookup(%q) = %v, %v", k, e, ok)
		}
		if d, ok := r.Delete(k); !ok || d != e {
			t.Errorf("Delete(%q) = %v, %v", k, d, ok)
		}
	}
	if r.Len() != 0 {
		t.Errorf("%d keys are left", r.Len())
	}
}

// What Peek returns is one value for all who look until the key changes, and stays as
// it was then.
func TestPeek(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	if p := r.Peek("a"); p != nil {
		t.Errorf("Peek of an empty registry = %v", *p)
	}
	mustPut(t, &r, "a", 1)
	first := r.Peek("a")
	if first == nil || *first != 1 || r.Peek("a") != first || r.Peek("b") != nil {
		t.Errorf("Peek = %v, then %v; of an absent key %v", first, r.Peek("a"), r.Peek("b"))
	}
	mustPut(t, &r, "a", 2)
	if second := r.Peek("a"); *first != 1 || *second != 2 {
		t.Errorf("Peek = %d and, after the key has changed, %d", *first, *second)
	}
	r.Delete("a")
	if p := r.Peek("a"); p != nil || *first != 1 {
		t.Errorf("Peek of a deleted key = %v; the first value is %d", p, *first)
	}
}

func TestPeekNormalizes(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: func(k string) (string, error) {
		if k == "" {
			return "", errors.New("empty")
		}
		return strings.ToLower(k), nil
	}})
	mustPut(t, r, "A", 1)
	if p := r.Peek("a"); p == nil || *p != 1 || r.Peek("A") != p {
		t.Errorf("Peek of two spellings = %v, %v", p, r.Peek("A"))
	}
	if p := r.Peek(""); p != nil {
		t.Errorf("Peek of an invalid key = %v", *p)
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

// Nothing that holds entities becomes {} without a word.
func TestJSONSaysWhatToDo(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "x", 1)
	for _, v := range []any{&r, r.Snapshot(), map[string]any{"inside": &r}} {
		text, err := json.Marshal(v)
		if err == nil || !strings.Contains(err.Error(), "marshal slices.Collect(s.Entries()) or maps.Collect(s.All())") {
			t.Errorf("json.Marshal of a %T = %s, %v", v, text, err)
		}
	}
}

// A snapshot may be printed while others look for keys in it.
func TestPrintSnapshot(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	for range 100 {
		s := r.Snapshot()
		hammer(t, 2, func(i int) {
			if i == 0 {
				s.Get("a")
			} else if got, want := fmt.Sprint(s), "a snapshot of 1 keys"; got != want {
				t.Errorf("a snapshot is printed as %s, want %s", got, want)
			}
		})
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

// Errors name versions in decimal.
func TestVersionsInErrors(t *testing.T) {
	for want, err := range map[string]error{
		"shardedregistry: version conflict: have 18446744073709551615, want 1234567890": &shardedregistry.ConflictError{Have: 1<<64 - 1, Want: 1_234_567_890},
		"shardedregistry: key exists: a at version 1234567890":                          &shardedregistry.ExistsError{Given: "a", Stored: "a", Version: 1_234_567_890},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// T26: odd numbers of shards.
func TestShards(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 255: 256, 1000: 1024, 65_535: 65_536, 65_536: 65_536} {
		r, err := shardedregistry.New(shardedregistry.Config[string, int]{Shards: n})
		if err != nil {
			t.Fatal(err)
		}
		if got := shardedregistry.Shards(r); got != want {
			t.Errorf("Shards: %d gives %d shards, want %d", n, got, want)
		}
		for i := range 50 {
			mustPut(t, r, key(i), i)
			wantValue(t, r, key(i), i)
		}
	}
	for procs, want := range map[int]int{1: 8, 2: 8, 3: 16, 8: 32, 64: 256, 1000: 256} {
		if got := shardedregistry.DefaultShards(procs); got != want {
			t.Errorf("the default for %d processors is %d shards, want %d", procs, got, want)
		}
	}
}

// A registry that is given no number of shards has as many as the processors want, and leaves these alone.
func TestShardsByDefault(t *testing.T) {
	const procs = 3 // which nothing else sets
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	for _, r := range []*shardedregistry.Registry[string, int]{new(shardedregistry.Registry[string, int]), shardedregistry.MustNew(shardedregistry.Config[string, int]{})} {
		if got, want := shardedregistry.Shards(r), shardedregistry.DefaultShards(procs); got != want {
			t.Errorf("%d shards, want %d", got, want)
		}
		if now := runtime.GOMAXPROCS(0); now != procs {
			t.Fatalf("the program had %d processors, and has %d", procs, now)
		}
	}
}

// A Registry without settings takes the shortest paths, also as its zero value.
func TestZeroRegistryIsLight(t *testing.T) {
	if r := new(shardedregistry.Registry[string, int]); !shardedregistry.IsLight(r) {
		t.Error("the zero Registry is not light")
	}
	if !shardedregistry.IsLight(shardedregistry.MustNew(shardedregistry.Config[string, int]{})) {
		t.Error("one without settings is not light")
	}
	if shardedregistry.IsLight(shardedregistry.MustNew(shardedregistry.Config[string, int]{History: 1})) {
		t.Error("one with a history is light")
	}
}

// How many changes are remembered is rounded up to a power of two.
func TestHistorySizes(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 3: 4, 1024: 1024, 1 << 24: 1 << 24} {
		if got, err := shardedregistry.HistorySize(n); got != want || err != nil {
			t.Errorf("History: %d remembers %d, %v; want %d", n, got, err, want)
		}
	}
}

func TestInvalidSizes(t *testing.T) {
	type config = shardedregistry.Config[string, int]
	of := map[string]config{"Config.History -1:": {History: -1}, "Config.History 16777217:": {History: 1<<24 + 1}}
	for _, n := range []int{-1, -1 << 31, 65_537, 1<<31 - 1} {
		of[fmt.Sprintf("Config.Shards %d:", n)] = config{Shards: n}
	}
	for text, config := range of {
		r, err := shardedregistry.New(config)
		if r != nil || err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s New returns %v, %v; want an error that names field and value", text, r, err)
		}
		wantPanic(t, text, func() { shardedregistry.MustNew(config) })
	}
}

// wantPanic fails the test unless f panics with a message of this package that
// contains text.
func wantPanic(t testing.TB, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		p := recover()
		var message string
		switch p := p.(type) {
		case string:
			message = p
		case error:
			message = p.Error()
		}
		if !strings.HasPrefix(message, "shardedregistry: ") || !strings.Contains(message, text) {
			t.Errorf("panic %v, want one of this package that says %q", p, text)
		}
	}()
	f()
}

// T8: go vet reports copies of a registry.
func TestNoCopy(t *testing.T) {
	first := reflect.TypeFor[shardedregistry.Registry[string, int]]().Field(0)
	if first.Type != reflect.TypeFor[atomics.NoCopy]() {
		t.Errorf("the first field is a %v", first.Type)
	}
}
