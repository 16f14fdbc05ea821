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

// keyed is what can be done to one key: by a registry, or through a Ref.
type keyed[K comparable] interface {
	Create(K, int) (shardedregistry.Version, error)
	Get(K) (int, bool)
	Peek(K) *int
	Lookup(K) (shardedregistry.Entry[K, int], bool)
	Put(K, int) (shardedregistry.Version, error)
	Update(K, func(int) (int, error)) (shardedregistry.Entry[K, int], error)
	UpdateIf(K, shardedregistry.Version, int) (shardedregistry.Version, error)
	Upsert(K, func(int, bool) (int, error)) (shardedregistry.Entry[K, int], error)
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
	e, err = r.Upsert(k, func(int, bool) (int, error) { return 1, nil })
	returned("Upsert", err, e == none)
	e, present, err := r.Compute(k, func(int, bool) (int, shardedregistry.ComputeOp, error) { return 1, shardedregistry.UpdateOp, nil })
	returned("Compute", err, e == none && !present)
	errs["DeleteIf"] = r.DeleteIf(k, e.Version)
	_, found["Delete"] = r.Delete(k)
	return errs, found
}

// everyMethodOf is everyMethod through a Ref.
func everyMethodOf[K comparable](ref shardedregistry.Ref[K, int]) (errs map[string]error, found map[string]bool) {
	var k K
	return everyMethod(refs[K]{ref}, k)
}

// refs is a Ref for which all keys are its own.
type refs[K comparable] struct{ ref shardedregistry.Ref[K, int] }

func (r refs[K]) Create(_ K, v int) (shardedregistry.Version, error) { return r.ref.Create(v) }
func (r refs[K]) Get(K) (int, bool)                                  { return r.ref.Get() }
func (r refs[K]) Peek(K) *int                                        { return r.ref.Peek() }
func (r refs[K]) Lookup(K) (shardedregistry.Entry[K, int], bool)     { return r.ref.Lookup() }
func (r refs[K]) Put(_ K, v int) (shardedregistry.Version, error)    { return r.ref.Put(v) }
func (r refs[K]) Delete(K) (shardedregistry.Entry[K, int], bool)     { return r.ref.Delete() }

func (r refs[K]) DeleteIf(_ K, version shardedregistry.Version) error {
	return r.ref.DeleteIf(version)
}

func (r refs[K]) Update(_ K, fn func(int) (int, error)) (shardedregistry.Entry[K, int], error) {
	return r.ref.Update(fn)
}

func (r refs[K]) UpdateIf(_ K, version shardedregistry.Version, v int) (shardedregistry.Version, error) {
	return r.ref.UpdateIf(version, v)
}

func (r refs[K]) Upsert(_ K, fn func(int, bool) (int, error)) (shardedregistry.Entry[K, int], error) {
	return r.ref.Upsert(fn)
}

func (r refs[K]) Compute(_ K, fn func(int, bool) (int, shardedregistry.ComputeOp, error)) (shardedregistry.Entry[K, int], bool, error) {
	return r.ref.Compute(fn)
}

func (r refs[K]) GetOrCreate(_ K, fn func() (int, error)) (int, bool, error) {
	return r.ref.GetOrCreate(fn)
}

// Every method that takes a key is in the table above, and a Ref has all of them. Wait and Renew have tests of their own.
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
	if ref := methods(reflect.TypeFor[shardedregistry.Ref[name, int]](), nil); !same(ref, append(slices.Clone(tested), "Renew")) {
		t.Errorf("the methods of a Ref are %v, tested are %v", ref, tested)
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

// users are the ways to use a key of a registry whose Normalize is that of the
// tests. Each comes with the registry's Len.
func users(calls *int) map[string]func() (keyed[string], func(spelling string) keyed[string], func() int) {
	count := func(k string) (string, error) { *calls++; return normalize(k) }
	return map[string]func() (keyed[string], func(string) keyed[string], func() int){
		"registry": func() (keyed[string], func(string) keyed[string], func() int) {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: count})
			return r, func(string) keyed[string] { return r }, r.Len
		},
		"ref": func() (keyed[string], func(string) keyed[string], func() int) {
			r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: count})
			return r, func(spelling string) keyed[string] { return refs[string]{r.Ref(spelling)} }, r.Len
		},
	}
}

// Every method finds another spelling of a key.
func TestNormalizeInEveryMethod(t *testing.T) {
	calls := 0
	for name, fresh := range users(&calls) {
		t.Run(name, func(t *testing.T) {
			first, as, _ := fresh()
			if _, err := first.Put(" Backup ", 1); err != nil {
				t.Fatal(err)
			}
			errs, found := everyMethod(as("BACKUP"), "BACKUP")
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
			if _, err := first.Put("backup", 1); err != nil {
				t.Fatal(err)
			}
			if e, ok := as("bACKUP").Delete("bACKUP"); !ok || e.Key != "backup" {
				t.Errorf("Delete of another spelling = %v, %v", e, ok)
			}
		})
	}
}

// Every method normalises its key exactly once, whatever comes of it. A Ref does
// so when it is made, and never again.
func TestNormalizeOnce(t *testing.T) {
	calls := 0
	for name, fresh := range users(&calls) {
		for _, k := range []string{" Absent ", "Present", " "} {
			t.Run(name+"/"+k, func(t *testing.T) {
				first, as, _ := fresh()
				first.Put("present", 1)
				calls = 0
				user := as(k)
				made := calls
				errs, found := everyMethod(user, k)
				want := len(errs) + len(found)
				if name == "ref" {
					made, want = made-1, 1
				}
				if calls != want || made != 0 {
					t.Errorf("%d methods normalised %d times, and the handle %d", len(errs)+len(found), calls, made)
				}
			})
		}
	}
}

// Stored keys are as normalised, and using them as keys changes nothing: what a
// loop yields is found, deleted, and created again under the same name.
func TestNormalizeIsIdempotent(t *testing.T) {
	calls := 0
	spellings := []string{"a", " A", "b ", "B\t", "\u212A", "É", "\u00a0x", "Y y", "z\x00 "}
	for name, fresh := range users(&calls) {
		t.Run(name, func(t *testing.T) {
			_, as, size := fresh()
			stored := map[string]bool{}
			for _, k := range spellings {
				e, err := as(k).Upsert(k, func(n int, _ bool) (int, error) { return n + 1, nil })
				if err != nil {
					t.Fatal(err)
				}
				stored[e.Key] = true
			}
			if size() != len(stored) || len(stored) != len(spellings)-2 {
				t.Errorf("%d keys of %v, Len = %d", len(stored), slices.Collect(maps.Keys(stored)), size())
			}
			for k := range stored {
				e, ok := as(k).Lookup(k)
				if !ok || e.Key != k {
					t.Errorf("Lookup(%q) = %v, %v", k, e, ok)
				}
				if d, ok := as(k).Delete(k); !ok || d != e {
					t.Errorf("Delete(%q) = %v, %v", k, d, ok)
				}
			}
			if size() != 0 {
				t.Errorf("%d keys are left", size())
			}
		})
	}
}
