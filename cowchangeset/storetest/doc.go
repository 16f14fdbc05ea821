// Package storetest checks stores of package cowchangeset: that they keep what the
// documentation of cowchangeset.Store, Loader, EntryLoader, Applier, Claimer and Pruner
// asks for.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Opener {
//			path := t.TempDir()
//			return func() (cowchangeset.Loader[string], error) { return Open(path) }
//		})
//	}
//
// The store must implement Loader and Applier; the other interfaces are checked if it
// implements them. It must refuse calls that contradict what it has. Package journal
// and the module integrations/sqlstore are checked by it.
package storetest

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Opener opens a store. The first call finds it empty. A later one opens it again, as
// the next process does: it ends the store that the call before has returned, and finds
// what that has kept.
type Opener func() (cowchangeset.Loader[string], error)

// Run checks stores. It calls fresh for each check: the function that fresh returns
// opens a store that has nothing in common with others.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	for seed := range uint64(8) {
		t.Run("Calls", func(t *testing.T) { must(t, Calls(seed, 60, fresh(t))) })
	}
	t.Run("IDs", func(t *testing.T) { must(t, IDs(fresh(t))) })
	t.Run("Long", func(t *testing.T) { must(t, Long(fresh(t))) })
	t.Run("Tracker", func(t *testing.T) { must(t, Tracker(fresh(t))) })
	t.Run("Claims", func(t *testing.T) { must(t, Claims(fresh(t))) })
	t.Run("Contexts", func(t *testing.T) { must(t, Contexts(fresh(t))) })
	t.Run("Prunes", func(t *testing.T) { must(t, Prunes(fresh(t))) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened opens a store and claims it, as a tracker would.
func opened(open Opener) (cowchangeset.Loader[string], error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	if c, ok := s.(cowchangeset.Claimer); ok {
		err = c.Claim(context.Background())
	}
	return s, err
}
