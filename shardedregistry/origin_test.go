//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"iter"
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
	mustPut(t, r, scoped{Space: "space", Key: "mine"}, 1)
	_, ofThis := r.Create(scoped{Space: "space", Key: "mine"}, 1)
	for _, theirs = range []error{
		ofNames, ofOthers, ofThis,
		&shardedregistry.UniqueError{Index: "i", Value: "v", Key: whole},
		fmt.Errorf("wrapped: %w", ofOthers),
	} {
		before := theirs.Error()
		k := scoped{Space: "space", Key: "new"}
		for name, err := range map[string]error{
			"Create": second(r.Create(k, 1)),
			"Put":    second(r.Put(k, 1)),
			"UpdateIf": func() error {
				e, _ := r.Lookup(scoped{Space: "space", Key: "mine"})
				return second(r.UpdateIf(e.Key, e.Version, 2))
			}(),
		} {
			if err != theirs {
				t.Errorf("%s = %v, want the very error of Check: %v", name, err, theirs)
			}
		}
		var failed *shardedregistry.KeyError
		both := func(yield func(scoped, int) bool) { _ = yield(scoped{Space: "space", Key: "mine"}, 1) && yield(k, 1) }
		if err := r.Replace(both, func(a, b int) bool { return a == b }); !errors.As(err, &failed) || failed.Err != theirs {
			t.Errorf("Replace = %v, want a KeyError with the very error of Check: %v", err, theirs)
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
