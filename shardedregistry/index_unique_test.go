//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

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
			taker := shardedregistry.Join(r)
			defer func() {
				if got := found(t, taker.Leave().Entries()); got != "a" {
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
