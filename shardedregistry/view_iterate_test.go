//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// tenants is a registry with an index, and views of two of its namespaces, each of
// which has a key "x" and one of its own.
func tenants(t *testing.T) (r *shardedregistry.Registry[scoped, string], a, b shardedregistry.View[string, string]) {
	value := func(_ scoped, v string) []string { return []string{v} }
	r = shardedregistry.MustNew(shardedregistry.Config[scoped, string]{
		Transitions:   true,
		Normalize:     func(k scoped) (scoped, error) { return scoped{k.Space, strings.ToLower(k.Key)}, nil },
		Indexes:       map[string]func(scoped, string) []string{"value": value},
		UniqueIndexes: map[string]func(scoped, string) []string{"key": func(k scoped, _ string) []string { return []string{k.String()} }},
	})
	a, b = shardedregistry.Namespace(r, "a"), shardedregistry.Namespace(r, "b")
	mustPut(t, r, scoped{"a", "x"}, "both")
	mustPut(t, r, scoped{"b", "x"}, "both")
	mustPut(t, r, scoped{"a", "mine"}, "of a")
	mustPut(t, r, scoped{"b", "other"}, "of b")
	return r, a, b
}

// A View has the methods of a registry, but for those that are about all of its keys at once,
// of all namespaces.
func TestViewHasEveryMethod(t *testing.T) {
	view := reflect.TypeFor[shardedregistry.View[string, int]]()
	whole := reflect.TypeFor[*shardedregistry.Registry[scoped, int]]()
	for i := range whole.NumMethod() {
		name := whole.Method(i).Name
		if name == "Clear" || name == "Replace" {
			continue
		}
		if _, ok := view.MethodByName(name); !ok {
			t.Errorf("a View lacks %s", name)
		}
	}
}

func TestViewSnapshot(t *testing.T) {
	r, a, _ := tenants(t)
	s := a.Snapshot()
	mustPut(t, r, scoped{"a", "x"}, "changed")
	want := map[string]string{"x": "both", "mine": "of a"}
	if got := maps.Collect(s.All()); !maps.Equal(got, want) || s.Len() != 2 {
		t.Errorf("the snapshot has %v, and %d keys; want %v", got, s.Len(), want)
	}
	if v, ok := s.Get("X"); !ok || v != "both" {
		t.Errorf("Get = %q, %v", v, ok)
	}
	if e, ok := s.Lookup("MINE"); !ok || e != (shardedregistry.Entry[string, string]{Key: "mine", Value: "of a", Version: 1}) {
		t.Errorf("Lookup = %v, %v", e, ok)
	}
	for _, k := range []string{"other", "b/x", ""} {
		if v, ok := s.Get(k); ok {
			t.Errorf("Get(%q) = %q", k, v)
		}
	}
	moving := shardedregistry.MustNew(shardedregistry.Config[scoped, int]{
		Normalize: func(k scoped) (scoped, error) {
			if k.Key == "moved" {
				return scoped{"b", "x"}, nil
			}
			return k, nil
		},
	})
	mustPut(t, moving, scoped{"a", "x"}, 1)
	mustPut(t, moving, scoped{"b", "x"}, 2)
	if v, ok := shardedregistry.Namespace(moving, "a").Snapshot().Get("moved"); ok {
		t.Errorf("Get of a key that Normalize moves to another namespace = %d", v)
	}
	var empty shardedregistry.Registry[scoped, int]
	none := shardedregistry.Namespace(&empty, "a").Snapshot()
	if _, ok := none.Get("x"); ok || none.Len() != 0 {
		t.Error("an unused registry has a key")
	}
}

// A loop over WatchSnapshot of a View keeps nothing of other namespaces.
func TestViewWatchSnapshotKeepsNoOthers(t *testing.T) {
	var r shardedregistry.Registry[scoped, int]
	k, used := fresh("key")
	mustPut(t, &r, scoped{"a", "x"}, 1)
	mustPut(t, &r, scoped{"b", k}, 2)
	k = ""
	for s := range shardedregistry.Namespace(&r, "a").WatchSnapshot(t.Context()) {
		if r.DeleteMatching(func(e shardedregistry.Entry[scoped, int]) bool { return e.Key.Space == "b" }); used() {
			t.Error("a key that was deleted in another namespace is kept")
		}
		if s.Len() == 1 {
			break
		}
	}
}

// A snapshot of a View keeps nothing of the registry, and nothing of other
// namespaces.
func TestViewSnapshotKeepsNoRegistry(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[scoped, *[1000]int]{
		Normalize: func(k scoped) (scoped, error) { return k, nil },
	})
	other := new([1000]int)
	mustPut(t, r, scoped{"a", "x"}, new([1000]int))
	mustPut(t, r, scoped{"b", "x"}, other)
	s := shardedregistry.Namespace(r, "a").Snapshot()
	registry, value := weak.Make(r), weak.Make(other)
	r, other = nil, nil
	runtime.GC()
	if registry.Value() != nil {
		t.Error("the registry is kept")
	}
	if value.Value() != nil {
		t.Error("a value of another namespace is kept")
	}
	if _, ok := s.Get("x"); !ok {
		t.Error("x is not found")
	}
}

func TestViewIndexes(t *testing.T) {
	_, a, b := tenants(t)
	keys := func(v shardedregistry.View[string, string], value string) (keys []string) {
		for e := range v.ByIndex("value", value) {
			keys = append(keys, e.Key)
		}
		return keys
	}
	if got := keys(a, "both"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("ByIndex yields %v", got)
	}
	if got := keys(a, "of b"); got != nil {
		t.Errorf("ByIndex yields %v, which are another namespace's", got)
	}
	for range b.ByIndex("value", "both") {
		break
	}
	if got := slices.Sorted(a.IndexValues("value")); !slices.Equal(got, []string{"both", "of a"}) {
		t.Errorf("IndexValues yields %v", got)
	}
	if e, ok := a.LookupBy("key", "a/mine"); !ok || e.Key != "mine" || e.Value != "of a" || e.Version != 1 {
		t.Errorf("LookupBy = %v, %v", e, ok)
	}
	if e, ok := a.LookupBy("key", "b/other"); ok || e != (shardedregistry.Entry[string, string]{}) {
		t.Errorf("LookupBy of another namespace's = %v, %v", e, ok)
	}
	for name, do := range map[string]func(){
		"ByIndex":     func() { a.ByIndex("none", "x") },
		"LookupBy":    func() { a.LookupBy("none", "x") },
		"IndexValues": func() { a.IndexValues("none") },
	} {
		if p, want := caught(do), "shardedregistry: "+name+" of the index \"none\", which is not in Config"; p != want {
			t.Errorf("%s panics with %v, want %s", name, p, want)
		}
	}
}

func caught(do func()) (p any) {
	defer func() { p = recover() }()
	do()
	return nil
}

// Loops over a View are told of its namespace alone: nothing is kept for the
// others, and a limit does not count them.
func TestViewIsToldOfItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, a, _ := tenants(t)
		before := shardedregistry.Traces(r)
		ctx, cancel := context.WithCancel(t.Context())
		type event = shardedregistry.Event[string, string]
		var watched, streamed, followed []event
		var state map[string]string
		ends := make(chan error, 3)
		go func() {
			for e := range a.Watch(ctx) {
				watched = append(watched, e)
			}
			ends <- nil
		}()
		go func() {
			var failed error
			for e, err := range a.Stream(ctx, 2) {
				if failed = errors.Join(failed, err); err == nil {
					streamed = append(streamed, e)
				}
			}
			ends <- failed
		}()
		go func() {
			for s, e := range a.WatchSnapshot(ctx) {
				if s != nil {
					state = maps.Collect(s.All())
				} else {
					followed = append(followed, e)
				}
			}
			ends <- nil
		}()
		synctest.Wait()
		for range 10 {
			mustPut(t, r, scoped{"b", "x"}, "again")
		}
		if n := shardedregistry.Seats(r); n != 0 {
			t.Errorf("%d seats at keys of another namespace", n)
		}
		r.Delete(scoped{"b", "other"})
		if n, linked := r.Len(), shardedregistry.Linked(r); n != linked {
			t.Errorf("%d cells for %d keys: nobody has to be told of the deletion", linked, n)
		}
		a.Put("x", "new")
		synctest.Wait()
		a.Delete("X")
		synctest.Wait()
		cancel()
		for range 3 {
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
		want := []event{{Key: "x", Value: "new", Version: 2}, {Key: "x", Version: 3, Deleted: true}}
		for name, got := range map[string][]event{"Watch": watched, "Stream": streamed, "WatchSnapshot": followed} {
			if !slices.Equal(got, want) {
				t.Errorf("%s yields %v, want %v", name, got, want)
			}
		}
		if want := map[string]string{"x": "both", "mine": "of a"}; !maps.Equal(state, want) {
			t.Errorf("WatchSnapshot begins with %v, want %v", state, want)
		}
		if n := shardedregistry.Traces(r); n != before {
			t.Errorf("%d traces are left", n-before)
		}
	})
}

// A Stream of a View lags when its own namespace is too quick for it.
func TestViewStreamLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := tenants(t)
		ends, gate := make(chan error), make(chan struct{})
		go func() {
			var last error
			for _, err := range a.Stream(t.Context(), 2) {
				for range 10 {
					b.Put("x", "many")
				}
				last = err
				<-gate
			}
			ends <- last
		}()
		synctest.Wait()
		a.Put("x", "one")
		synctest.Wait()
		for range 3 {
			a.Put("x", "many")
		}
		close(gate)
		if lagged := new(shardedregistry.LaggedError); !errors.As(<-ends, &lagged) || lagged.Limit != 2 {
			t.Errorf("the loop ended with %v", lagged)
		}
	})
}

// Loops that are left leave nothing behind.
func TestViewLoopsAreLeft(t *testing.T) {
	r, a, _ := tenants(t)
	before := shardedregistry.Traces(r)
	for range a.WatchSnapshot(t.Context()) {
		break
	}
	for s := range a.WatchSnapshot(t.Context()) {
		if s == nil {
			break
		}
		a.Put("x", "1")
	}
	if n := shardedregistry.Traces(r); n != before {
		t.Errorf("%d traces are left", n-before)
	}
}

func TestViewWait(t *testing.T) {
	_, a, _ := tenants(t)
	e, err := a.Wait(t.Context(), "X", 0)
	if want := (shardedregistry.Entry[string, string]{Key: "x", Value: "both", Version: 1}); err != nil || e != want {
		t.Errorf("Wait = %v, %v; want %v", e, err, want)
	}
	if _, err := a.Wait(t.Context(), "other", 1); !errors.Is(err, shardedregistry.ErrNotFound) {
		t.Errorf("Wait for another namespace's key = %v", err)
	}
	for name, do := range map[string]func(){
		"Wait":          func() { a.Wait(noContext, "x", 0) },
		"Watch":         func() { a.Watch(noContext) },
		"WatchSnapshot": func() { a.WatchSnapshot(noContext) },
		"Stream":        func() { a.Stream(noContext, 1) },
	} {
		if p, want := caught(do), "shardedregistry: "+name+" called with a nil context"; p != want {
			t.Errorf("%s(nil) panics with %v, want %s", name, p, want)
		}
	}
}

func TestViewRef(t *testing.T) {
	r, a, _ := tenants(t)
	ref := a.Ref("X")
	if v, ok := ref.Get(); !ok || v != "both" {
		t.Errorf("Get = %q, %v", v, ok)
	}
	e, err := ref.Update(func(string) (string, error) { return "new", nil })
	if want := (shardedregistry.Entry[scoped, string]{Key: scoped{"a", "x"}, Value: "new", Version: 2}); err != nil || e != want {
		t.Errorf("Update = %v, %v; want %v", e, err, want)
	}
	wantValue(t, r, scoped{"b", "x"}, "both")
	var exists *shardedregistry.ExistsError
	if _, err := ref.Create("other"); !errors.As(err, &exists) || exists.Given != "X" || exists.Stored != "x" {
		t.Errorf("Create = %v", err)
	}
}

func TestViewString(t *testing.T) {
	_, a, _ := tenants(t)
	if got, want := a.String(), `the namespace "a" of a registry`; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
}
