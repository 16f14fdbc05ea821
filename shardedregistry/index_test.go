//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Every way to store and to delete changes what a key is found by.
func TestByIndex(t *testing.T) {
	r := newTasks()
	ann, bob := task{Owner: "ann", Tags: []string{"x"}}, task{Owner: "bob", Tags: []string{"x", "y"}}
	want := func(owners, tags string) {
		t.Helper()
		got := fmt.Sprintf("ann: %s; bob: %s", found(t, r.ByIndex("owner", "ann")), found(t, r.ByIndex("owner", "bob")))
		if got != owners {
			t.Errorf("owners are %q, want %q", got, owners)
		}
		got = fmt.Sprintf("x: %s; y: %s", found(t, r.ByIndex("tag", "x")), found(t, r.ByIndex("tag", "y")))
		if got != tags {
			t.Errorf("tags are %q, want %q", got, tags)
		}
		agreeTasks(t, r)
	}
	want("ann: ; bob: ", "x: ; y: ")
	r.Create("A", ann)
	r.Put("B", ann)
	createOrUpdate(r, "C", func(task, bool) (task, error) { return bob, nil })
	want("ann: a b; bob: c", "x: a b c; y: c")
	r.Create("a", bob) // is there
	want("ann: a b; bob: c", "x: a b c; y: c")
	r.Put("a", bob)
	want("ann: b; bob: a c", "x: a b c; y: a c")
	r.Update("b", func(task) (task, error) { return bob, nil })
	want("ann: ; bob: a b c", "x: a b c; y: a b c")
	createOrUpdate(r, "c", func(task, bool) (task, error) { return ann, nil })
	e, _ := r.Lookup("a")
	r.UpdateIf("a", e.Version+1, ann) // conflict
	want("ann: c; bob: a b", "x: a b c; y: a b")
	r.UpdateIf("a", e.Version, task{Owner: "ann"})
	want("ann: a c; bob: b", "x: b c; y: b")
	r.Delete("b")
	want("ann: a c; bob: ", "x: c; y: ")
	e, _ = r.Lookup("c")
	r.DeleteIf("c", e.Version)
	r.Delete("c")
	want("ann: a; bob: ", "x: ; y: ")
	r.Create("c", bob)
	want("ann: a; bob: c", "x: c; y: c")
}

// T25: {a} to {a, b} and back, and values in another order or more than once.
// What does not change stays where it is.
func TestByIndexSeveralValues(t *testing.T) {
	r := newTasks()
	for _, tags := range [][]string{{"a"}, {"a", "b"}, {"b", "a"}, {"b", "b", "a", "b"}, {"c", "b", "a"}, {"c"}, nil, {""}, {"a", ""}} {
		tags := slices.Clone(tags)
		mustPut(t, r, "k", task{Owner: "ann", Tags: tags})
		for _, v := range []string{"a", "b", "c", ""} {
			want := ""
			if slices.Contains(tags, v) {
				want = "k"
			}
			if got := found(t, r.ByIndex("tag", v)); got != want {
				t.Errorf("with %q, ByIndex(%q) yields %q", tags, v, got)
			}
		}
		agreeTasks(t, r)
	}
}

// A function's result is the function's: it is copied, and neither ordered nor
// kept.
func TestIndexKeepsNoSlice(t *testing.T) {
	tags := []string{"b", "a"}
	r := newTasks()
	mustPut(t, r, "k", task{Owner: "ann", Tags: tags})
	if !slices.Equal(tags, []string{"b", "a"}) {
		t.Errorf("the tags became %q", tags)
	}
	tags[0] = "c" // behind the registry's back
	if got := found(t, r.ByIndex("tag", "b")); got != "k" {
		t.Errorf("ByIndex(b) yields %q, want what was stored", got)
	}
	r.Delete("k")
	agreeTasks(t, r)
}

// What is found by an index is what it was stored with, whatever the function
// says later; so a function that is not pure corrupts nothing.
func TestIndexFunctionIsNotPure(t *testing.T) {
	next := 0
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Indexes: map[string]func(string, int) []string{"n": func(string, int) []string {
			next++
			return []string{fmt.Sprint(next % 3)}
		}},
	})
	for range 10 {
		for i := range 5 {
			mustPut(t, r, key(i), 0)
		}
	}
	if _, keys, pins := shardedregistry.Pins(r); keys != 5 || pins != 5 {
		t.Errorf("%d keys and %d pins for 5 keys", keys, pins)
	}
	for i := range 5 {
		r.Delete(key(i))
	}
	if shelves, _, _ := shardedregistry.Pins(r); shelves != 0 {
		t.Errorf("%d values are left of nothing", shelves)
	}
}

// Functions are given the key as it is stored.
func TestIndexOfNormalizedKey(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Normalize: normalize,
		Check: func(k string, _ int) error {
			if strings.ToLower(k) != k {
				return errors.New("not normalised")
			}
			return nil
		},
		Indexes: map[string]func(string, int) []string{"first": func(k string, _ int) []string { return []string{k[:1]} }},
	})
	mustPut(t, r, " Backup", 1)
	if got := found(t, r.ByIndex("first", "b")); got != "backup" {
		t.Errorf("ByIndex yields %q", got)
	}
}

// A loop is over what had the value when it began, as far as that still has it
// when its turn comes. Its body may change the registry, and may end it.
func TestByIndexBody(t *testing.T) {
	r := newTasks()
	const n = 50
	for i := range n {
		mustPut(t, r, key(i), task{Owner: "ann"})
	}
	seq := r.ByIndex("owner", "ann")
	seen := map[string]bool{}
	for e := range seq {
		if seen[e.Key] || len(seen) >= n/2 {
			t.Fatalf("%s is yielded after %d keys", e.Key, len(seen))
		}
		seen[e.Key] = true
		mustPut(t, r, "new of "+e.Key, task{Owner: "ann"}) // is not yielded
		if len(seen) == n/2 {
			for i := range n {
				if !seen[key(i)] {
					mustPut(t, r, key(i), task{Owner: "bob"}) // is not yielded any more
				}
			}
		}
	}
	count := 0
	for range seq { // anew
		if count++; count == 3 {
			break
		}
	}
	for owner := range r.IndexValues("owner") {
		for e := range r.ByIndex("owner", owner) {
			r.Delete(e.Key)
		}
		if count++; count == 5 {
			break
		}
	}
	if count != 5 || r.Len() != 0 {
		t.Errorf("%d loops left %d keys", count, r.Len())
	}
	agreeTasks(t, r)
}

// What a writer has in progress, or has left behind for ever, is not found, and
// does not stop others.
func TestWriterStallsBeforeItStores(t *testing.T) {
	r := newTasks()
	mustPut(t, r, "k", task{Owner: "ann", Email: "k@x"})
	undo := shardedregistry.Pinned(r, "k", "email", "new@x")
	undoAbsent := shardedregistry.Pinned(r, "absent", "email", "new@x")
	if _, ok := r.LookupBy("email", "new@x"); ok {
		t.Error("a value is found that is only about to be stored")
	}
	if got := slices.Collect(r.IndexValues("email")); len(got) != 1 {
		t.Errorf("IndexValues yields %q", got)
	}
	if _, err := r.Put("other", task{Owner: "ann", Email: "new@x"}); err != nil {
		t.Errorf("Put = %v", err)
	}
	undo()
	undoAbsent()
	agreeTasks(t, r)
}

// An index function may read the registry, and one that blocks delays nobody.
func TestIndexFunctionBlocks(t *testing.T) {
	entered, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	var r *shardedregistry.Registry[string, int]
	indexes := map[string]func(string, int) []string{"parity": func(_ string, v int) []string {
		if v == -1 {
			once.Do(func() { close(entered) })
			<-release
		}
		r.Get("slow")
		for range r.ByIndex("parity", "0") {
			r.LookupBy("value", "1")
		}
		return []string{fmt.Sprint(v & 1)}
	}}
	unique := map[string]func(string, int) []string{"value": func(_ string, v int) []string { return []string{fmt.Sprint(v)} }}
	r = shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, Indexes: indexes, UniqueIndexes: unique})
	go func() {
		defer close(done)
		if _, err := r.Put("slow", -1); err != nil {
			t.Errorf("Put = %v", err)
		}
	}()
	await(t, entered)
	within(t, func() {
		for i := range 300 {
			mustPut(t, r, key(i), i)
			if i%2 == 0 {
				r.Delete(key(i))
			}
		}
		mustPut(t, r, "slow", -3)
	})
	close(release)
	await(t, done)
	wantValue(t, r, "slow", -1)
	indexes["parity"] = func(_ string, v int) []string { return []string{fmt.Sprint(v & 1)} }
	agree(t, r, indexes, unique)
}

// A function that changes its own key is found out with indexes too, and leaves
// none of its attempts behind.
func TestSelfishFunctionWithIndexes(t *testing.T) {
	r := newTasks()
	mustPut(t, r, "k", task{Owner: "ann"})
	runs := 0
	_, err := r.Update("k", func(v task) (task, error) {
		runs++
		mustPut(t, r, "k", task{Owner: "bob", Tags: []string{fmt.Sprint(runs)}, Email: fmt.Sprint(runs)})
		return task{Owner: "cid", Tags: []string{"never"}, Email: "never"}, nil
	})
	if !errors.Is(err, shardedregistry.ErrTooManyRetries) {
		t.Errorf("Update = %v", err)
	}
	agreeTasks(t, r)
}

// Records that are found by the same share what says so, also while a snapshot is
// being taken, in whatever order the functions return it.
func TestIndexKeysAreShared(t *testing.T) {
	r := newTasks()
	mustPut(t, r, "k", task{Owner: "ann", Tags: []string{"a", "b"}})
	same := func(tags ...string) bool {
		return shardedregistry.SameIndexKeys(r, "k", func() { mustPut(t, r, "k", task{Owner: "ann", Tags: tags}) })
	}
	if !same("a", "b") || !same("b", "a", "b") || same("a") || !same("a") || same() {
		t.Error("index keys are shared where they differ, or are not where they agree")
	}
	taker := shardedregistry.Join(r)
	if !same() || same("a") || !same("a") {
		t.Error("likewise in dated records")
	}
	if n := shardedregistry.Kept(r); n != 1 {
		t.Errorf("%d records are kept for a snapshot, want what the key held at its cut", n)
	}
	taker.Leave()
	if !same("a") {
		t.Error("likewise after dated records")
	}
	agreeTasks(t, r)
}
