//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

// oblivious returns a tracker of n changesets with an entry each, which its store,
// a Pruner, has.
func oblivious(t *testing.T, n int, config cowchangeset.Config[int]) (*cowchangeset.Tracker[int], *forgetful) {
	tracker, store := forgetting(config)
	for v := range n {
		if _, err := tracker.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		tracker.Record(v)
	}
	if err := tracker.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tracker, store
}

func prunes(m *memory) (calls []string) {
	for _, c := range m.called() {
		if strings.HasPrefix(c, "Prune") {
			calls = append(calls, c)
		}
	}
	return calls
}

// Prune stops at what is sealed, and neither applied nor aborted: with a store or
// without, what is pending remains so until it is applied or aborted.
func TestPruneStopsAtThePending(t *testing.T) {
	for _, store := range []*forgetful{nil, {memory: newMemory()}} {
		var config cowchangeset.Config[int]
		if store != nil {
			config.Store = store
		}
		tracker := cowchangeset.MustNew(config)
		var sets []*cowchangeset.Changeset[int]
		for v := range 5 {
			c, err := tracker.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tracker.Record(v)
			sets = append(sets, c)
		}
		check := func(forgotten int, pending ...uint64) {
			t.Helper()
			if err := tracker.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			n := tracker.Prune(1)
			var left []uint64
			for c := range tracker.Pending() {
				left = append(left, c.Ordinal())
			}
			if n != forgotten || !slices.Equal(left, pending) {
				t.Errorf("forgot %d, pending %v; want %d, %v", n, left, forgotten, pending)
			}
		}
		apply := func(c *cowchangeset.Changeset[int], err error) {
			t.Helper()
			if got := c.Apply(t.Context(), func(context.Context, final) error { return err }); got != err {
				t.Fatal(got)
			}
		}
		check(0, 1, 2, 3, 4)
		apply(sets[0], errDisk)
		apply(sets[1], nil)
		check(0, 1, 3, 4)
		if err := sets[0].Abort(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		check(2, 3, 4)
		apply(sets[3], nil)
		check(0, 3)
		apply(sets[2], nil)
		check(2)
		if store != nil {
			if err := tracker.Flush(t.Context()); err != nil || len(store.order) != 1 {
				t.Errorf("the store has %v, %v", store.order, err)
			}
			store.check(t)
		}
	}
}

// A store that is a Pruner is told soon of what the tracker has forgotten, once.
func TestPrunerIsNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, store := oblivious(t, 4, cowchangeset.Config[int]{})
		if calls := prunes(store.memory); calls != nil {
			t.Error(calls)
		}
		for _, keep := range []int{4, 2, 2} {
			tracker.Prune(keep)
			synctest.Wait()
		}
		if got := store.ids(); !slices.Equal(got, []string{"3", "4"}) {
			t.Errorf("the store has %v", got)
		}
		tracker.Start(t.Context())
		tracker.Flush(t.Context())
		tracker.Prune(1)
		if err := tracker.Flush(t.Context()); err != nil { // which waits for it
			t.Error(err)
		}
		if calls := prunes(store.memory); !slices.Equal(calls, []string{"Prune  3", "Prune  5"}) {
			t.Errorf("it was told %q", calls)
		}
		store.check(t)
	})
}

// If the store fails to forget, Flush says so, and it or the next Prune tries again.
func TestPrunerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, again := range []func(*cowchangeset.Tracker[int]){
			func(tracker *cowchangeset.Tracker[int]) { tracker.Prune(3) }, // of nothing more
			func(tracker *cowchangeset.Tracker[int]) {
				if err := tracker.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			},
		} {
			tracker, store := oblivious(t, 4, cowchangeset.Config[int]{})
			store.faults(failing("Prune"))
			if n := tracker.Prune(2); n != 2 {
				t.Error(n)
			}
			synctest.Wait()
			err := tracker.Flush(t.Context())
			wantStoreError(t, err, "Prune", errDisk)
			if !strings.HasSuffix(err.Error(), "store failed: Prune: disk full") {
				t.Error(err)
			}
			if _, err := tracker.Start(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := tracker.Record(9); err != nil {
				t.Error(err)
			}
			store.faults(nil)
			again(tracker)
			synctest.Wait()
			if got := store.ids(); !slices.Equal(got, []string{"3", "4", "5"}) {
				t.Errorf("the store has %v", got)
			}
			store.check(t)
		}
	})
}

// A store that takes its time to forget delays nothing but a Flush.
func TestPrunerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, store := oblivious(t, 3, cowchangeset.Config[int]{StoreTimeout: time.Minute})
		store.faults(func(_ context.Context, method, _ string) error {
			if method == "Prune" {
				time.Sleep(time.Hour)
			}
			return nil
		})
		began := time.Now()
		tracker.Prune(1)
		synctest.Wait() // until the store has been called
		c, _ := tracker.Current()
		_, err := tracker.Record(9)
		_, err2 := tracker.Start(t.Context())
		if err3 := c.Apply(t.Context(), func(context.Context, final) error { return nil }); err != nil || err2 != nil || err3 != nil {
			t.Error(err, err2, err3)
		}
		if n := tracker.Prune(1); n != 1 || time.Since(began) != 0 {
			t.Errorf("forgot %d in %v", n, time.Since(began))
		}
		wantStoreError(t, tracker.Flush(t.Context()), "Prune", cowchangeset.ErrStore)
		if d := time.Since(began); d != time.Minute {
			t.Errorf("Flush took %v", d)
		}
		time.Sleep(24 * time.Hour)
		if calls := prunes(store.memory); !slices.Equal(calls, []string{"Prune  3", "Prune  4"}) {
			t.Errorf("it was told %q", calls)
		}
		store.check(t)
	})
}

// Resume goes on where a store begins that has forgotten the first ones, and does
// not tell it to.
func TestResumeAfterPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, store := oblivious(t, 4, cowchangeset.Config[int]{})
		tracker.Prune(2)
		synctest.Wait()
		tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{PruneUnapplied: true, Store: store, NewID: func(context.Context) (string, error) { return "next", nil }})
		if err != nil {
			t.Fatal(err)
		}
		if ids := tracker.IDs(); !slices.Equal(ids, []string{"3", "4"}) {
			t.Errorf("resumed %v", ids)
		}
		c, open := tracker.Current()
		if c.Ordinal() != 4 || !open || c.Previous().Ordinal() != 3 || c.Previous().Previous() != nil {
			t.Error(c.Ordinal(), open)
		}
		if n, err := tracker.Start(t.Context()); err != nil || n.Ordinal() != 5 {
			t.Error(n, err)
		}
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if tracker.Prune(3) != 0 {
			t.Error("forgot some")
		}
		synctest.Wait()
		if calls := prunes(store.memory); len(calls) != 1 {
			t.Errorf("it was told %q", calls)
		}
		tracker.Prune(1)
		if err := tracker.Flush(t.Context()); err != nil || !slices.Equal(store.ids(), []string{"next"}) {
			t.Error(err, store.ids())
		}
		store.check(t)
	})
}

// A store that has never forgotten anything is told of the first changeset that is, after Resume too.
func TestResumeBeforePrune(t *testing.T) {
	_, store := oblivious(t, 3, cowchangeset.Config[int]{})
	tracker, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{PruneUnapplied: true, Store: store})
	if err != nil || tracker.Prune(2) != 1 {
		t.Fatal(err)
	}
	if err := tracker.Flush(t.Context()); err != nil || !slices.Equal(store.ids(), []string{"2", "3"}) {
		t.Error(err, store.ids())
	}
}

// A changeset is applied when any flush has told the store so, not only the Apply that could not.
func TestAppliedByALaterFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: m})
		c, _ := tracker.Start(t.Context())
		tracker.Start(t.Context())
		pending := func() (n int) {
			for range tracker.Pending() {
				n++
			}
			return n
		}
		m.faults(func(_ context.Context, method, _ string) error {
			if method == "Applied" {
				return errDisk
			}
			return nil
		})
		err := c.Apply(t.Context(), func(context.Context, cowchangeset.Final[int]) error { return nil })
		wantStoreError(t, err, "Applied", errDisk)
		if n, pruned := pending(), tracker.Prune(1); n != 1 || pruned != 0 {
			t.Errorf("before the store knows: %d pending, %d pruned; want 1 and none", n, pruned)
		}
		m.faults(nil)
		if err := tracker.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, pruned := pending(), tracker.Prune(1); n != 0 || pruned != 1 {
			t.Errorf("when the store knows: %d pending, %d pruned; want none and 1", n, pruned)
		}
		if err := c.Apply(t.Context(), func(context.Context, cowchangeset.Final[int]) error { return errDisk }); err != nil {
			t.Errorf("another Apply, which has nothing left to do: %v", err)
		}
	})
}

// A forgotten changeset can still be applied, by its holder.
func TestPrunedIsApplied(t *testing.T) {
	tracker, store := forgetting(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	tracker.Record(1)
	tracker.Start(t.Context())
	if err := tracker.Flush(t.Context()); err != nil || tracker.Prune(1) != 1 {
		t.Fatal(err)
	}
	store.faults(failing("Applied"))
	if err := c.Apply(t.Context(), func(context.Context, final) error { return nil }); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

// Prune asks again for a changeset in which it does not stop, too.
func TestPruneTriesOlderChangesetsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: m, Async: true})
		tracker.Start(t.Context())
		tracker.Record(1)
		second, _ := tracker.Start(t.Context())
		synctest.Wait()
		m.faults(failing("Append"))
		tracker.Record(2)
		synctest.Wait()
		tracker.Start(t.Context())
		synctest.Wait()
		m.faults(nil)
		for range 10 {
			tracker.Prune(1)
			synctest.Wait()
		}
		if len(m.values(second.ID())) != 1 {
			t.Errorf("after ten calls of Prune the store has %v", m.values(second.ID()))
		}
	})
}
