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
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Opener opens a store. The first call finds it empty. A later one opens it again, as
// the next process does: it ends the store that the call before has returned, and finds
// what that has kept.
type Opener func() (cowchangeset.Loader[string], error)

// Run checks stores, with random calls and odd IDs, and beneath trackers. It calls fresh
// for each check: the function that fresh returns opens a store that has nothing in common
// with others.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	check := func(name string, check func(Opener) error) {
		t.Run(name, func(t *testing.T) {
			if err := check(fresh(t)); err != nil {
				t.Fatalf("storetest: %v", err)
			}
		})
	}
	for seed := range uint64(8) {
		check("Calls", func(open Opener) error { return calls(seed, 60, open) })
	}
	check("IDs", ids)
	check("Tracker", trackers)
	check("Claims", claims)
}
