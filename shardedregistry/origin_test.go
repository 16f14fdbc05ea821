//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// one yields one pair.
func one[K, V any](k K, v V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { yield(k, v) }
}

// Errors of Check come back as they are, also those that this package has made
// elsewhere: in a registry with other keys, in one with the same, or in this one.
func TestErrorsOfCheckComeBackAsTheyAre(t *testing.T) {
	var names shardedregistry.Registry[string, int]
	var others shardedregistry.Registry[scoped, int]
	whole := scoped{Space: "elsewhere", Key: "k"}
	mustPut(t, &names, "taken", 1)
	mustPut(t, &others, whole, 1)
	_, ofNames := names.Create("taken", 2)
	_, ofOthers := others.Create(whole, 2)
	var theirs error
	r := shardedregistry.MustNew(shardedregistry.Config[scoped, int]{Check: func(scoped, int) error { return theirs }})
	view := shardedregistry.Namespace(r, "space")
	if _, err := view.Create("mine", 1); err != nil {
		t.Fatal(err)
	}
	_, ofThis := r.Create(scoped{Space: "space", Key: "mine"}, 1)
	for _, theirs = range []error{
		ofNames, ofOthers, ofThis,
		&shardedregistry.UniqueError{Index: "i", Value: "v", Key: whole},
		fmt.Errorf("wrapped: %w", ofOthers),
	} {
		before := theirs.Error()
		k := scoped{Space: "space", Key: "new"}
		for name, err := range map[string]error{
			"Create":      second(r.Create(k, 1)),
			"Put":         second(r.Put(k, 1)),
			"Ref.Create":  second(r.Ref(k).Create(1)),
			"View.Create": second(view.Create("new", 1)),
			"View.Put":    second(view.Put("new", 1)),
			"View.UpdateIf": func() error {
				e, _ := view.Lookup("mine")
				return second(view.UpdateIf("mine", e.Version, 2))
			}(),
		} {
			if err != theirs {
				t.Errorf("%s = %v, want the very error of Check: %v", name, err, theirs)
			}
		}
		for name, err := range map[string]error{
			"CreateMany":      second(r.CreateMany(one(k, 1))),
			"View.CreateMany": second(view.CreateMany(one("new", 1))),
		} {
			var failed *shardedregistry.KeyError
			if !errors.As(err, &failed) || failed.Err != theirs {
				t.Errorf("%s = %v, want a KeyError with the very error of Check: %v", name, err, theirs)
			}
		}
		if theirs.Error() != before {
			t.Errorf("the error has become %v, and was %s", theirs, before)
		}
	}
	if r.Len() != 1 {
		t.Errorf("%d keys were created", r.Len()-1)
	}
}

func second[T any](_ T, err error) error { return err }

// emails is a registry of two tenants with one unique index for both.
func emails() *shardedregistry.Registry[scoped, string] {
	return shardedregistry.MustNew(shardedregistry.Config[scoped, string]{
		UniqueIndexes: map[string]func(scoped, string) []string{
			"email": func(_ scoped, v string) []string { return []string{v} },
		},
	})
}

// What a View says about a key shows no Space, and of another namespace nothing.
func TestErrorsOfAViewShowNoOtherNamespace(t *testing.T) {
	r := emails()
	a, b := shardedregistry.Namespace(r, "tenant-a"), shardedregistry.Namespace(r, "tenant-b")
	for _, err := range []error{second(a.Create("alice", "x@y")), second(b.Create("bob", "b@y")), second(b.Create("ben", "n@y"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	e, _ := b.Lookup("bob")
	to := func(value string) map[string]error {
		return map[string]error{
			"Create":      second(b.Create("new", value)),
			"CreateMany":  second(b.CreateMany(one("new", value))),
			"Put":         second(b.Put("bob", value)),
			"Put, absent": second(b.Put("new", value)),
			"Update":      second(b.Update("bob", func(string) (string, error) { return value, nil })),
			"UpdateIf":    second(b.UpdateIf("bob", e.Version, value)),
			"Upsert":      second(b.Upsert("new", func(string, bool) (string, error) { return value, nil })),
			"Compute": func() error {
				_, _, err := b.Compute("new", func(string, bool) (string, shardedregistry.ComputeOp, error) {
					return value, shardedregistry.UpdateOp, nil
				})
				return err
			}(),
			"GetOrCreate": func() error {
				_, _, err := b.GetOrCreate("new", func() (string, error) { return value, nil })
				return err
			}(),
		}
	}
	var taken *shardedregistry.UniqueError
	for name, err := range to("x@y") {
		if !errors.As(err, &taken) || taken.Key != nil || strings.Contains(err.Error(), "alice") || strings.Contains(err.Error(), "tenant") {
			t.Errorf("%s with a value of another namespace = %v", name, err)
		}
	}
	for name, err := range to("n@y") {
		if !errors.As(err, &taken) || taken.Key != "ben" || strings.Contains(err.Error(), "tenant") {
			t.Errorf("%s with a value of another key = %v", name, err)
		}
	}
	if _, err := b.CreateMany(maps.All(map[string]string{"bob": "z@y"})); !errors.Is(err, shardedregistry.ErrExists) || strings.Contains(err.Error(), "tenant") {
		t.Errorf("CreateMany of a key that is present = %v", err)
	}

	// Who works with whole keys sees those of the same namespace whole.
	_, err := r.Put(scoped{"tenant-b", "new"}, "x@y")
	if !errors.As(err, &taken) || taken.Key != nil || strings.Contains(err.Error(), "tenant-a") {
		t.Errorf("Put = %v", err)
	}
	_, err = r.Put(scoped{"tenant-b", "new"}, "n@y")
	if !errors.As(err, &taken) || taken.Key != (scoped{"tenant-b", "ben"}) {
		t.Errorf("Put = %v", err)
	}
}

// A key that contains a Scoped, or a registry of any keys some of which are Scoped,
// has no namespaces.
func TestErrorsOfWhatIsNotScoped(t *testing.T) {
	unique := map[string]func(compoundKey, int) []string{"u": func(compoundKey, int) []string { return []string{"x"} }}
	r := shardedregistry.MustNew(shardedregistry.Config[compoundKey, int]{UniqueIndexes: unique})
	first := compoundKey{scoped: scoped{"a", "k"}}
	mustPut(t, r, first, 1)
	var taken *shardedregistry.UniqueError
	if _, err := r.Put(compoundKey{scoped: scoped{"b", "k"}}, 1); !errors.As(err, &taken) || taken.Key != first {
		t.Errorf("Put = %v", err)
	}
	if _, err := r.Put(compoundKey{numbers: [2]float32{float32(math.NaN())}}, 1); !errors.Is(err, shardedregistry.ErrInvalidKey) {
		t.Errorf("Put of a NaN = %v", err)
	}
	type embeds struct{ *scoped }
	other := shardedregistry.MustNew(shardedregistry.Config[any, int]{UniqueIndexes: map[string]func(any, int) []string{
		"u": func(any, int) []string { return []string{"x"} },
	}})
	mustPut[any](t, other, scoped{"a", "k"}, 1)
	for _, k := range []any{"k", embeds{}, scoped{"b", "k"}} {
		if _, err := other.Put(k, 1); !errors.As(err, &taken) || taken.Key != (scoped{"a", "k"}) {
			t.Errorf("Put(%v) = %v", k, err)
		}
	}
}

// A key that is invalid is shown as it was given to the View.
func TestInvalidKeysOfAView(t *testing.T) {
	var r shardedregistry.Registry[shardedregistry.Scoped[any], int]
	view := shardedregistry.Namespace(&r, "space")
	for _, k := range []any{math.NaN(), []int{1}} {
		for name, err := range map[string]error{
			"Create":     second(view.Create(k, 1)),
			"CreateMany": second(view.CreateMany(one(k, 1))),
			"DeleteIf":   view.DeleteIf(k, 1),
		} {
			if !errors.Is(err, shardedregistry.ErrInvalidKey) || strings.Contains(err.Error(), "space") || strings.Contains(err.Error(), "Scoped") {
				t.Errorf("%s(%v) = %v", name, k, err)
			}
		}
	}
}
