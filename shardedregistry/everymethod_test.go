//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

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
