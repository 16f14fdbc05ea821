//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

func TestView(t *testing.T) {
	var r shardedregistry.Registry[scoped, int]
	plans, actions := shardedregistry.Namespace(&r, "plans"), shardedregistry.Namespace(&r, "actions")
	for i := range 10 {
		if _, err := plans.Create(key(i), i); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := actions.Create(key(0), 100); err != nil {
		t.Errorf("the same name in another namespace: %v", err)
	}
	_, err := plans.Create(key(0), 5)
	if want := "shardedregistry: key exists: action-00000 at version 1"; err == nil || err.Error() != want {
		t.Errorf("Create = %v, want %q", err, want)
	}
	_, err = r.Create(scoped{"plans", key(0)}, 5)
	if want := "shardedregistry: key exists: plans/action-00000 at version 1"; err == nil || err.Error() != want {
		t.Errorf("Create of the registry = %v, want %q", err, want)
	}
	if v, ok := plans.Get(key(0)); !ok || v != 0 {
		t.Errorf("Get = %v, %v", v, ok)
	}
	if v, ok := actions.Get(key(0)); !ok || v != 100 {
		t.Errorf("Get = %v, %v", v, ok)
	}
	e, err := plans.Update(key(1), func(v int) (int, error) { return v + 50, nil })
	if want := (shardedregistry.Entry[string, int]{Key: key(1), Value: 51, Version: 2}); err != nil || e != want {
		t.Errorf("Update = %v, %v; want %v", e, err, want)
	}
	if got, ok := plans.Lookup(key(1)); !ok || got != e {
		t.Errorf("Lookup = %v, %v; want %v", got, ok, e)
	}
	if e, err := plans.Upsert("new", func(int, bool) (int, error) { return 7, nil }); err != nil || e.Key != "new" || e.Value != 7 {
		t.Errorf("Upsert = %v, %v", e, err)
	}
	if e, ok := plans.Delete("new"); !ok || e.Key != "new" || e.Value != 7 {
		t.Errorf("Delete = %v, %v", e, ok)
	}
	if plans.Len() != 10 || actions.Len() != 1 || r.Len() != 11 {
		t.Errorf("Len = %d, %d, together %d; want 10, 1, 11", plans.Len(), actions.Len(), r.Len())
	}
	want := map[string]int{}
	for i := range 10 {
		want[key(i)] = i
	}
	want[key(1)] = 51
	if got := maps.Collect(plans.All()); !maps.Equal(got, want) {
		t.Errorf("All yields %v, want %v", got, want)
	}
	for e := range actions.Entries() {
		if e.Key != key(0) || e.Value != 100 || e.Version != 1 {
			t.Errorf("Entries yields %v", e)
		}
	}
	for range plans.All() {
		break
	}
	for range plans.Entries() {
		break
	}
}

func TestViewOfAnEmptyRegistry(t *testing.T) {
	var r shardedregistry.Registry[scoped, int]
	v := shardedregistry.Namespace(&r, "plans")
	if n := v.Len(); n != 0 {
		t.Errorf("Len = %d", n)
	}
	for k := range v.All() {
		t.Errorf("All yields %v", k)
	}
	if n := v.DeleteMatching(func(shardedregistry.Entry[string, int]) bool { return true }); n != 0 {
		t.Errorf("DeleteMatching = %d", n)
	}
	if _, ok := v.Get("a"); ok {
		t.Error("Get finds something")
	}
}

// Namespaces do not overlap, whatever they are called, and the one without a
// name is one like others.
func TestNamespacesDoNotOverlap(t *testing.T) {
	var r shardedregistry.Registry[scoped, int]
	parts := []string{"", "a", "b", "/", "a/", "/a", "\x00", "a\x00", "\x00a", "a\x00b", "ab"}
	for i, space := range parts {
		for j, k := range parts {
			if _, err := shardedregistry.Namespace(&r, space).Create(k, i*len(parts)+j); err != nil {
				t.Errorf("Create(%q) in %q: %v", k, space, err)
			}
		}
	}
	for i, space := range parts {
		v := shardedregistry.Namespace(&r, space)
		if n := v.Len(); n != len(parts) {
			t.Errorf("%q has %d keys, want %d", space, n, len(parts))
		}
		for k, value := range v.All() {
			if j := value - i*len(parts); j < 0 || j >= len(parts) || parts[j] != k {
				t.Errorf("%q yields %q with %d", space, k, value)
			}
		}
	}
	if n := r.Len(); n != len(parts)*len(parts) {
		t.Errorf("Len = %d", n)
	}
}

// A key that Normalize moves to another namespace is invalid: nothing of the
// other is seen or changed.
func TestViewStaysInItsNamespace(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[scoped, int]{
		Normalize: func(k scoped) (scoped, error) {
			return scoped{strings.ToLower(k.Space), strings.ToLower(k.Key)}, nil
		},
	})
	if _, err := shardedregistry.Namespace(r, "plans").Create("A", 1); err != nil {
		t.Fatal(err)
	}
	moved := shardedregistry.Namespace(r, "Plans")
	errs, found := everyMethod[string](moved, "a")
	for method, err := range errs {
		wantIs(t, method, err, shardedregistry.ErrInvalidKey)
	}
	for method, ok := range found {
		if ok {
			t.Errorf("%s finds a key of another namespace", method)
		}
	}
	if e, ok := r.Lookup(scoped{"plans", "a"}); !ok || e.Value != 1 || e.Version != 1 {
		t.Errorf("the other namespace's key is %v, %v", e, ok)
	}
	if n := moved.Len(); n != 0 {
		t.Errorf("Len = %d", n)
	}
	everywhere := func(shardedregistry.Entry[string, int]) bool { return true }
	if n := moved.DeleteMatching(everywhere); n != 0 || r.Len() != 1 {
		t.Errorf("DeleteMatching = %d, %d keys are left", n, r.Len())
	}
}

func TestViewInvalid(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[scoped, int]{
		Normalize: func(k scoped) (scoped, error) {
			norm, err := normalize(k.Key)
			return scoped{k.Space, norm}, err
		},
	})
	v := shardedregistry.Namespace(r, "plans")
	errs, found := everyMethod[string](v, " ")
	for method, err := range errs {
		if !errors.Is(err, shardedregistry.ErrInvalidKey) || !errors.Is(err, errBlank) {
			t.Errorf("%s = %v, want ErrInvalidKey with the normaliser's own error", method, err)
		}
	}
	for method, ok := range found {
		if ok {
			t.Errorf("%s finds an invalid key", method)
		}
	}
	wantPanic(t, "Update called with a nil function", func() { _, _ = v.Update("a", nil) })
	wantPanic(t, "Upsert called with a nil function", func() { _, _ = v.Upsert("a", nil) })
	wantPanic(t, "GetOrCreate called with a nil function", func() { _, _, _ = v.GetOrCreate("a", nil) })
	wantPanic(t, "DeleteMatching called with a nil function", func() { v.DeleteMatching(nil) })
}

// A batch creates its keys in the namespace, and names them without it.
func TestViewCreateMany(t *testing.T) {
	var r shardedregistry.Registry[scoped, int]
	v := shardedregistry.Namespace(&r, "plans")
	if _, err := v.Create("b", 7); err != nil {
		t.Fatal(err)
	}
	n, err := v.CreateMany(slicesAll([]string{"a", "b", "c"}))
	if want := "shardedregistry: key exists: b at version 1"; n != 2 || err == nil || err.Error() != want {
		t.Errorf("CreateMany = %d, %v; want 2, %s", n, err, want)
	}
	if v.Len() != 3 || r.Len() != 3 {
		t.Errorf("Len = %d of %d, want 3", v.Len(), r.Len())
	}
	wantPanic(t, "CreateMany called with a nil iterator", func() { _, _ = v.CreateMany(nil) })
}

// A View deletes what matches in its namespace and asks about nothing else.
func TestViewDeleteMatching(t *testing.T) {
	var r shardedregistry.Registry[scoped, int]
	for _, space := range []string{"plans", "actions"} {
		for i := range 20 {
			if _, err := shardedregistry.Namespace(&r, space).Put(key(i), i); err != nil {
				t.Fatal(err)
			}
		}
	}
	asked := 0
	n := shardedregistry.Namespace(&r, "plans").DeleteMatching(func(e shardedregistry.Entry[string, int]) bool {
		asked++
		return e.Key == key(e.Value) && e.Value%4 == 0
	})
	if n != 5 || asked != 20 || r.Len() != 35 {
		t.Errorf("DeleteMatching = %d after %d questions, %d keys are left; want 5, 20, 35", n, asked, r.Len())
	}
}
