//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset"
)

// refused returns a tracker of three changesets with an entry each, and its store,
// which knows all of them but what it has refused: a method of the second.
func refused(t *testing.T, refuses string) (*cowchangeset.Tracker[int], *memory) {
	tracker, m := kept(cowchangeset.Config[int]{Async: true})
	m.faults(func(_ context.Context, method, id string) error {
		if method == refuses && id == "2" {
			return errDisk
		}
		return nil
	})
	for v := range 3 {
		tracker.Start(t.Context())
		tracker.Record(v)
		synctest.Wait()
	}
	if err := tracker.Flush(t.Context()); !errors.Is(err, errDisk) || m.has("2").Sealed || !m.has("1").Sealed {
		t.Fatal("nothing was refused", err)
	}
	m.faults(nil)
	return tracker, m
}

// Resume tells the store what that missed, of any changeset, and knows what it
// has.
func TestResumeTellsWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := refused(t, "Seal")
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what Resume begins has not run when it returns
		tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
		if err != nil {
			t.Fatal(err)
		}
		for c, _ := tracker.Current(); c != nil; c = c.Previous() {
			if c.Durable() != 1 {
				t.Errorf("%d entries of %s are durable, want 1", c.Durable(), c.ID())
			}
		}
		synctest.Wait()
		if !m.has("2").Sealed {
			t.Error("the store does not know of the second seal")
		}
		m.check(t)
	})
}

// A Prune asks for what the changeset lacks at which it stops, also when it has
// forgotten others.
func TestPruneAsksWhereItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := refused(t, "Append")
		if n := tracker.Prune(1); n != 1 {
			t.Fatalf("forgot %d, want the first", n)
		}
		synctest.Wait()
		wantValues(t, m, "2", 1)
		m.check(t)
	})
}
