//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
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
	if lists, _, _ := shardedregistry.Pins(r); lists != 0 {
		t.Errorf("%d values are left of nothing", lists)
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
	if testing.Short() {
		t.Skip("MaxAttempts attempts with three indexes take seconds")
	}
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
	taking := shardedregistry.Join(r)
	if !same() || same("a") || !same("a") {
		t.Error("likewise in dated records")
	}
	if n := shardedregistry.Kept(r); n != 1 {
		t.Errorf("%d records are kept for a snapshot, want what the key held at its cut", n)
	}
	taking.Leave()
	if !same("a") {
		t.Error("likewise after dated records")
	}
	agreeTasks(t, r)
}

// task is an entity with what it is found by.
type task struct {
	Owner string
	Tags  []string
	Email string // unique, if not empty
}

var errEmptyOwner = errors.New("a task needs an owner")

func byOwner(_ string, v task) []string { return []string{v.Owner} }
func byTag(_ string, v task) []string   { return v.Tags }

func byEmail(_ string, v task) []string {
	if v.Email == "" {
		return nil
	}
	return []string{v.Email}
}

type (
	tasks    = shardedregistry.Registry[string, task]
	taskFunc = func(string, task) []string
)

func newTasks() *tasks {
	return shardedregistry.MustNew(shardedregistry.Config[string, task]{
		Shards:        2,
		Normalize:     normalize,
		Indexes:       map[string]taskFunc{"owner": byOwner, "tag": byTag},
		UniqueIndexes: map[string]taskFunc{"email": byEmail},
		Check: func(_ string, v task) error {
			if v.Owner == "" {
				return errEmptyOwner
			}
			return nil
		},
	})
}

// found returns the keys that a loop over an index yields, in order.
func found[V any](t testing.TB, entries iter.Seq[shardedregistry.Entry[string, V]]) string {
	t.Helper()
	var keys []string
	for e := range entries {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	if len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Errorf("a key is yielded twice: %v", keys)
	}
	return strings.Join(keys, " ")
}

// agree fails the test unless each index is what the functions say of what the
// keys hold, has no other pins, and nobody has a unique value twice.
func agree[K comparable, V any](t testing.TB, r *shardedregistry.Registry[K, V], indexes, unique map[string]func(K, V) []string) {
	t.Helper()
	lists, pins := 0, 0
	for name, values := range maps.Collect(both(indexes, unique)) {
		want := map[string]map[K]shardedregistry.Version{}
		for e := range r.Entries() {
			for _, v := range values(e.Key, e.Value) {
				if want[v] == nil {
					want[v] = map[K]shardedregistry.Version{}
				}
				want[v][e.Key] = e.Version
			}
		}
		for v, keys := range want {
			got := map[K]shardedregistry.Version{}
			for e := range r.ByIndex(name, v) {
				got[e.Key] = e.Version
			}
			if !maps.Equal(got, keys) {
				t.Errorf("ByIndex(%s, %q) yields %v, want %v", name, v, got, keys)
			}
			if unique[name] != nil && len(keys) > 1 {
				t.Errorf("%s %q is had by %v", name, v, keys)
			}
			pins += len(keys)
		}
		values := slices.Sorted(r.IndexValues(name))
		if all := slices.Sorted(maps.Keys(want)); !slices.Equal(values, all) {
			t.Errorf("IndexValues(%s) yields %q, want %q", name, values, all)
		}
		lists += len(want)
	}
	gotLists, gotKeys, gotPins := shardedregistry.Pins(r)
	if gotLists != lists || gotKeys != pins || gotPins != pins {
		t.Errorf("the indexes keep %d values, %d keys and %d pins, want %d, %d and %[5]d", gotLists, gotKeys, gotPins, lists, pins)
	}
}

func both[K, V any](x, y map[string]func(K, V) []string) iter.Seq2[string, func(K, V) []string] {
	return func(yield func(string, func(K, V) []string) bool) {
		for _, m := range []map[string]func(K, V) []string{x, y} {
			for name, f := range m {
				if !yield(name, f) {
					return
				}
			}
		}
	}
}

func agreeTasks(t testing.TB, r *tasks) {
	t.Helper()
	agree(t, r, map[string]taskFunc{"owner": byOwner, "tag": func(_ string, v task) []string {
		return slices.Compact(slices.Sorted(slices.Values(v.Tags)))
	}}, map[string]taskFunc{"email": byEmail})
}

func TestUniqueErrorMessage(t *testing.T) {
	err := &shardedregistry.UniqueError{Index: "email", Value: "a b", Key: 7}
	if got, want := err.Error(), `shardedregistry: value of a unique index is taken: email "a b" by 7`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A unique value is free when the call returns that has given it up, also while a
// snapshot keeps what had it.
func TestUniqueValueIsFreed(t *testing.T) {
	for _, taking := range []bool{false, true} {
		r := newTasks()
		holding := task{Owner: "ann", Email: "x"}
		mustPut(t, r, "a", holding)
		if taking {
			taking := shardedregistry.Join(r)
			defer func() {
				if got := found(t, taking.Leave().Entries()); got != "a" {
					t.Errorf("the snapshot contains %q", got)
				}
			}()
		}
		owned := func(by string) {
			t.Helper()
			e, ok := r.LookupBy("email", "x")
			if ok != (by != "") || e.Key != by {
				t.Errorf("LookupBy = %v, %v; want %q", e, ok, by)
			}
		}
		for _, free := range []struct {
			name string
			do   func(k string)
		}{
			{"Delete", func(k string) { r.Delete(k) }},
			{"Put", func(k string) { mustPut(t, r, k, task{Owner: "ann"}) }},
			{"DeleteIf", func(k string) { e, _ := r.Lookup(k); r.DeleteIf(k, e.Version) }},
			{"Update", func(k string) {
				r.Update(k, func(v task) (task, error) { v.Email = "y" + k; return v, nil })
			}},
		} {
			owned("a")
			if _, err := r.Put("b", holding); !errors.Is(err, shardedregistry.ErrNotUnique) {
				t.Errorf("before %s, Put = %v", free.name, err)
			}
			if _, err := r.Put("a", holding); err != nil {
				t.Errorf("a key may not keep its value: %v", err)
			}
			free.do("a")
			owned("")
			if _, err := r.Put("b", holding); err != nil {
				t.Errorf("after %s, Put = %v", free.name, err)
			}
			owned("b")
			free.do("b")
			mustPut(t, r, "a", holding)
		}
	}
}

// A value is taken though keys that had it before, and whose deleters have stalled, are found first.
func TestUniqueBesideStalledDeleters(t *testing.T) {
	r := newTasks()
	x := task{Owner: "ann", Email: "x"}
	for i := range 8 {
		mustPut(t, r, key(i), x)
		defer shardedregistry.Kill(r, key(i))()
	}
	mustPut(t, r, "b", x)
	if _, err := r.Put("c", x); !errors.Is(err, shardedregistry.ErrNotUnique) {
		t.Errorf("Put = %v", err)
	}
	err := r.Transact(func(tx *shardedregistry.Tx[string, task]) error {
		for i := range 8 {
			tx.Get(key(i))
		}
		return tx.Put("c", x)
	})
	if !errors.Is(err, shardedregistry.ErrNotUnique) {
		t.Errorf("Transact = %v", err)
	}
}

// Each unique value has a lock, and one only.
func TestUniqueValuesHaveALock(t *testing.T) {
	r := newTasks()
	for i := range 1000 { // some fifteen for each lock
		if n := shardedregistry.LocksOf(r, "email", key(i)); n != 1 {
			t.Fatalf("%d locks", n)
		}
	}
}

// Two keys cannot swap a unique value by two updates, whichever order they come
// in, and nobody waits for ever.
func TestUniqueSwap(t *testing.T) {
	r := newTasks()
	mustPut(t, r, "a", task{Owner: "ann", Email: "1"})
	mustPut(t, r, "b", task{Owner: "ann", Email: "2"})
	hammer(t, 2, func(worker int) {
		for range iterations(2000) {
			_, err := r.Put([]string{"a", "b"}[worker], task{Owner: "ann", Email: []string{"2", "1"}[worker]})
			if !errors.Is(err, shardedregistry.ErrNotUnique) {
				t.Errorf("Put = %v", err)
			}
		}
	})
	agreeTasks(t, r)
}

// Of several values that are taken, the error names the first: by the name of the
// index, and then by the value.
func TestUniqueErrorNamesTheFirst(t *testing.T) {
	every := byTag
	unique := map[string]taskFunc{}
	for _, name := range []string{"d", "b", "e", "a", "c"} {
		unique[name] = every
	}
	unique["a"] = func(k string, _ task) []string { return []string{k} } // is never taken
	r := shardedregistry.MustNew(shardedregistry.Config[string, task]{UniqueIndexes: unique})
	mustPut(t, r, "1", task{Tags: []string{"z", "y"}})
	mustPut(t, r, "2", task{Tags: []string{"x"}})
	for _, values := range [][]string{{"z", "x", "y"}, {"x", "z", "y"}, {"y", "z", "x", "w"}} {
		_, err := r.Put("3", task{Tags: values})
		var taken *shardedregistry.UniqueError
		if !errors.As(err, &taken) || *taken != (shardedregistry.UniqueError{Index: "b", Value: "x", Key: "2"}) {
			t.Errorf("Put of %q = %v", values, err)
		}
	}
}

// A value that is taken is no error of a run whose key has changed meanwhile: the function runs again.
func TestUniqueErrorOfAStaleRun(t *testing.T) {
	r := newTasks()
	mustPut(t, r, "a", task{Owner: "ann", Email: "1"})
	mustPut(t, r, "b", task{Owner: "bob", Email: "2"})
	runs := 0
	e, err := r.Update("b", func(v task) (task, error) {
		if runs++; runs == 1 {
			mustPut(t, r, "b", task{Owner: "eve", Email: "2"})
			v.Email = "1"
		}
		return v, nil
	})
	if err != nil || runs != 2 || e.Value.Owner != "eve" {
		t.Errorf("Update = %v, %v after %d runs", e, err, runs)
	}
}

// Nor is it one of a transaction's run whose key has changed. That run keeps no lock.
func TestUniqueErrorOfAStaleTransaction(t *testing.T) {
	r := newTasks()
	mustPut(t, r, "a", task{Owner: "ann", Email: "1"})
	mustPut(t, r, "b", task{Owner: "bob", Email: "2"})
	var runs int
	var err error
	within(t, func() {
		err = r.Transact(func(tx *shardedregistry.Tx[string, task]) error {
			v, _ := tx.Get("b")
			if runs++; runs == 1 {
				r.Put("b", task{Owner: "eve", Email: "2"})
			}
			v.Email = "1"
			return tx.Put("b", v)
		})
	})
	var taken *shardedregistry.UniqueError
	if !errors.As(err, &taken) || taken.Key != "a" || runs != 2 {
		t.Errorf("Transact = %v after %d runs", err, runs)
	}
}

// storing is every way to store a value for the key "k", present or not.
func storing(r *tasks, present bool, v task) map[string]func() error {
	e, _ := r.Lookup("k")
	rejected := func(nothing bool, err error) error {
		if err != nil && !nothing {
			return fmt.Errorf("something beside the error %v", err)
		}
		return err
	}
	all := map[string]func() error{
		"Compute": func() error {
			e, present, err := r.Compute("k", func(task, bool) (task, shardedregistry.ComputeOp, error) {
				return v, shardedregistry.UpdateOp, nil
			})
			return rejected(e.Version == 0 && !present, err)
		},
		"Put": func() error { version, err := r.Put("k", v); return rejected(version == 0, err) },
		"Compute, present or not": func() error {
			e, err := createOrUpdate(r, "k", func(task, bool) (task, error) { return v, nil })
			return rejected(e.Version == 0, err)
		},
	}
	if present {
		all["Update"] = func() error {
			e, err := r.Update("k", func(task) (task, error) { return v, nil })
			return rejected(e.Version == 0, err)
		}
		all["UpdateIf"] = func() error { version, err := r.UpdateIf("k", e.Version, v); return rejected(version == 0, err) }
	} else {
		all["Create"] = func() error { version, err := r.Create("k", v); return rejected(version == 0, err) }
		all["GetOrCreate"] = func() error {
			_, created, err := r.GetOrCreate("k", func() (task, error) { return v, nil })
			if created != (err == nil) {
				return fmt.Errorf("created: %v, %v", created, err)
			}
			return err
		}
	}
	return all
}

// T25: what Check, an index function or a unique value rejects is not stored, and
// leaves nothing behind.
func TestRejected(t *testing.T) {
	for _, present := range []bool{false, true} {
		for name := range storing(newTasks(), present, task{}) {
			t.Run(fmt.Sprintf("%s, present: %v", name, present), func(t *testing.T) {
				leave := func() {}
				r := shardedregistry.MustNew(shardedregistry.Config[string, task]{
					Indexes: map[string]taskFunc{"owner": byOwner, "zzz": func(_ string, v task) []string {
						if v.Owner == "leaves" {
							leave()
						}
						return nil
					}},
					UniqueIndexes: map[string]taskFunc{"email": byEmail},
					Check: func(_ string, v task) error {
						if v.Owner == "" {
							return errEmptyOwner
						}
						return nil
					},
				})
				mustPut(t, r, "other", task{Owner: "bob", Email: "b@x"})
				if present {
					mustPut(t, r, "k", task{Owner: "ann", Email: "a@x"})
				}
				before, was := r.Lookup("k")
				unchanged := func(what string) {
					t.Helper()
					if e, ok := r.Lookup("k"); ok != was || fmt.Sprint(e) != fmt.Sprint(before) || r.Len() != shardedregistry.Linked(r) {
						t.Errorf("after %s the key holds %v, %v", what, e, ok)
					}
					agree(t, r, map[string]taskFunc{"owner": byOwner, "zzz": func(string, task) []string { return nil }},
						map[string]taskFunc{"email": byEmail})
				}
				if err := storing(r, present, task{})[name](); err != errEmptyOwner {
					t.Errorf("the error of Check became %v", err)
				}
				unchanged("an error of Check")
				err := storing(r, present, task{Owner: "cid", Email: "b@x"})[name]()
				want := shardedregistry.UniqueError{Index: "email", Value: "b@x", Key: "other"}
				var unique *shardedregistry.UniqueError
				if !errors.As(err, &unique) || *unique != want || !errors.Is(err, shardedregistry.ErrNotUnique) || errors.Is(err, shardedregistry.ErrExists) {
					t.Errorf("the error for a value that is taken is %v", err)
				}
				unchanged("a value that is taken")
				for how, exit := range map[string]func(){"panic": func() { panic("the caller's panic") }, "Goexit": runtime.Goexit} {
					leave = exit
					if p := left(t, func() { storing(r, present, task{Owner: "leaves", Email: "c@x"})[name]() }); how == "panic" && p != "the caller's panic" {
						t.Errorf("the panic became %v", p)
					}
					unchanged(how)
				}
				if err := storing(r, present, task{Owner: "ann", Email: "c@x"})[name](); err != nil {
					t.Errorf("then it is %v", err)
				}
			})
		}
	}
}

func TestUnknownIndex(t *testing.T) {
	var zero tasks
	r := newTasks()
	wantPanic(t, `ByIndex of the index "owner", which is not in Config`, func() { zero.ByIndex("owner", "ann") })
	wantPanic(t, `ByIndex of the index "name", which is not in Config`, func() { r.ByIndex("name", "ann") })
	wantPanic(t, `IndexValues of the index "name", which is not in Config`, func() { r.IndexValues("name") })
	wantPanic(t, `LookupBy of the index "name", which is not in Config`, func() { r.LookupBy("name", "ann") })
	wantPanic(t, `LookupBy of the index "owner", which is not unique`, func() { r.LookupBy("owner", "ann") })
	mustPut(t, &zero, "a", task{})
	wantPanic(t, `ByIndex of the index "", which is not in Config`, func() { zero.ByIndex("", "ann") })
}

func TestInvalidIndexes(t *testing.T) {
	type config = shardedregistry.Config[string, task]
	for want, c := range map[string]config{
		`Config.Indexes["owner"]: must not be nil`:       {Indexes: map[string]taskFunc{"owner": nil, "tag": byTag}},
		`Config.UniqueIndexes["email"]: must not be nil`: {UniqueIndexes: map[string]taskFunc{"email": nil}},
		`Config.UniqueIndexes["owner"]: must not be in Config.Indexes too`: {
			Indexes: map[string]taskFunc{"owner": byOwner}, UniqueIndexes: map[string]taskFunc{"owner": byOwner}},
	} {
		r, err := shardedregistry.New(c)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, %v; want an error that says %s", r, err, want)
		}
	}
	indexes := map[string]taskFunc{"owner": byOwner}
	r := shardedregistry.MustNew(config{Indexes: indexes})
	delete(indexes, "owner") // is the caller's
	r.ByIndex("owner", "")
}

// Check alone is a registry's rule too.
func TestCheck(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Check: func(k string, v int) error {
		if v < 0 {
			return fmt.Errorf("%s is %d", k, v)
		}
		return nil
	}})
	mustPut(t, r, "a", 1)
	if _, err := r.Put("a", -1); err == nil || err.Error() != "a is -1" {
		t.Errorf("Put = %v", err)
	}
	if _, err := r.Create("b", -1); err == nil || err.Error() != "b is -1" {
		t.Errorf("Create = %v", err)
	}
	if _, err := r.Create("a", -1); !errors.Is(err, shardedregistry.ErrExists) {
		t.Errorf("Create of a present key = %v", err)
	}
	if _, err := r.UpdateIf("a", 7, -1); !errors.Is(err, shardedregistry.ErrConflict) {
		t.Errorf("UpdateIf of another version = %v", err)
	}
	if e, ok := r.Delete("a"); !ok || e.Value != 1 || r.Len() != 0 {
		t.Errorf("Delete = %v, %v", e, ok)
	}
}

// A set of postings is what a map of counts is, and earlier sets stay as they
// were. Keys are hashes: those of the second kind differ in the top bits alone,
// so that the trie is as deep as it gets.
func TestPostings(t *testing.T) {
	for name, key := range map[string]func(i uint64) uint64{
		"spread": func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 },
		"deep":   func(i uint64) uint64 { return i << 60 },
		"deeper": func(i uint64) uint64 { return i % 2 << 63 },
	} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			var s shardedregistry.Postings
			want := map[uint64]int{}
			type version struct {
				s    shardedregistry.Postings
				want map[uint64]int
			}
			var versions []version
			check := func(v version) {
				t.Helper()
				if got := v.s.Map(); !maps.Equal(got, v.want) || v.s.Len() != len(v.want) {
					t.Fatalf("%d keys: %v, want %v", v.s.Len(), got, v.want)
				}
			}
			for i := range 4000 {
				k := key(rnd.Uint64N(400))
				if growing := i/500%2 == 0; want[k] == 0 || growing && rnd.IntN(4) > 0 {
					s = s.Plus(k)
					want[k]++
				} else {
					s = s.Minus(k)
					if want[k]--; want[k] == 0 {
						delete(want, k)
					}
				}
				if i%97 == 0 {
					versions = append(versions, version{s, maps.Clone(want)})
				}
				check(version{s, want})
			}
			for _, v := range versions {
				check(v)
			}
			for k, n := range want {
				for range n {
					s = s.Minus(k)
				}
			}
			if s != (shardedregistry.Postings{}) {
				t.Error("what is empty is not the empty set")
			}
		})
	}
}

// The trie grows and shrinks with its keys, and keys with one hash share a leaf
// at its end.
func TestPostingsShape(t *testing.T) {
	var s shardedregistry.Postings
	want := func(branches, leaves int) {
		t.Helper()
		if b, l := s.Nodes(); b != branches || l != leaves {
			t.Errorf("%d keys: %d branches and %d leaves, want %d and %d", s.Len(), b, l, branches, leaves)
		}
	}
	for i := range uint64(8) {
		s = s.Plus(i)
	}
	want(0, 1)
	s = s.Plus(8)
	want(1, 9)
	for i := range uint64(4) {
		s = s.Minus(i)
	}
	want(1, 5)
	s = s.Minus(4)
	want(0, 1)
	s = s.Plus(4) // neither splits again nor gathers
	want(0, 1)

	s = shardedregistry.Postings{}
	for i := range uint64(9) {
		s = s.Plus(i << 4) // alike in the first four bits
	}
	want(2, 9)

	// Of 20,000 keys, each change copies a few nodes of a tree that is as deep as
	// its size asks.
	s = shardedregistry.Postings{}
	for i := range uint64(20_000) {
		s = s.Plus(i * 0x9e3779b97f4a7c15)
	}
	if branches, leaves := s.Nodes(); branches > 20_000/8 || leaves > 20_000 {
		t.Errorf("%d branches and %d leaves for %d keys", branches, leaves, s.Len())
	}
	for i := range uint64(20_000) {
		s = s.Minus(i * 0x9e3779b97f4a7c15)
	}
	want(0, 0)
}

// A loop over postings gets none when it has ended, however deep it was.
func TestPostingsLoopEnds(t *testing.T) {
	var s shardedregistry.Postings
	for i := range uint64(300) {
		s = s.Plus(i << 52) // alike in the first 52 bits
	}
	for n := range s.Len() + 2 {
		want := min(max(n, 1), s.Len())
		if seen, whole := s.First(n); seen != want || whole != (n > s.Len()) {
			t.Errorf("a loop that ends after %d of %d keys got %d, and whole is %v", n, s.Len(), seen, whole)
		}
	}
}

// Keys that cannot be told apart by their hashes are kept all the same.
func TestPostingsWithOneHash(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{
		Indexes: map[string]func(int, int) []string{"owner": func(_, owner int) []string { return []string{key(owner)} }},
	})
	shardedregistry.SetHash(r, func(int) uint64 { return 42 })
	const n = 40
	for i := range n {
		mustPut(t, r, i, 1)
	}
	for i := range n {
		if i%2 == 0 {
			mustPut(t, r, i, 0)
		}
	}
	for odd := range 2 {
		found := map[int]bool{}
		for e := range r.ByIndex("owner", key(odd)) {
			if found[e.Key] || e.Key%2 != odd {
				t.Errorf("ByIndex(%s) yields %v", key(odd), e)
			}
			found[e.Key] = true
		}
		if len(found) != n/2 {
			t.Errorf("ByIndex(%s) yields %d keys, want %d", key(odd), len(found), n/2)
		}
	}
}
