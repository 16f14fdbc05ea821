//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

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
