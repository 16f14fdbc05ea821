//go:build !modelcheck

package cowchangeset_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

func ordinals[E any](changesets iter.Seq[*cowchangeset.Changeset[E]]) (ns []uint64) {
	for c := range changesets {
		ns = append(ns, c.Ordinal())
	}
	return ns
}

// all returns the ordinals that All yields, each with its changeset.
func all[E any](t *testing.T, tracker *cowchangeset.Tracker[E]) (ns []uint64) {
	t.Helper()
	for n, c := range tracker.All() {
		if c.Ordinal() != n {
			t.Errorf("%d comes with changeset %d", n, c.Ordinal())
		}
		ns = append(ns, n)
	}
	return ns
}

// A loop over All has the changesets of its beginning, whatever happens meanwhile.
func TestAll(t *testing.T) {
	tracker, _ := kept(cowchangeset.Config[int]{})
	early := tracker.All()
	for range 4 {
		tracker.Start(t.Context())
	}
	if err := tracker.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ns []uint64
	for n := range early {
		if n == 1 {
			tracker.Start(t.Context())
			tracker.Flush(t.Context())
			tracker.Prune(1)
		}
		ns = append(ns, n)
	}
	if !slices.Equal(ns, []uint64{1, 2, 3, 4}) {
		t.Error(ns)
	}
	if got := all(t, tracker); !slices.Equal(got, []uint64{5}) {
		t.Error(got)
	}
	for range tracker.All() {
		break
	}
}

// A changeset that All yields is the latest or sealed, although a Start stalls.
func TestAllHelps(t *testing.T) {
	tracker, c := opened(t, 1)
	tracker.Announce("next")
	if got := all(t, tracker); !slices.Equal(got, []uint64{1, 2}) || !c.IsSealed() {
		t.Error(got, c.IsSealed())
	}
}

// Changesets are found by ID, ordinal and neighbour, and what was forgotten is not.
func TestFind(t *testing.T) {
	tracker, _ := kept(cowchangeset.Config[int]{})
	find := func() (ns []uint64) {
		for n := range uint64(7) {
			c, ok := tracker.ByOrdinal(n)
			if ok != (c != nil) || ok && c.Ordinal() != n {
				t.Error(n, c, ok)
			}
			id := ""
			if ok {
				ns, id = append(ns, n), c.ID()
			}
			if again, found := tracker.ByID(id); found != ok || again != c {
				t.Error(again, found)
			}
		}
		if got := all(t, tracker); !slices.Equal(got, ns) {
			t.Error(got, ns)
		}
		return ns
	}
	if got := find(); got != nil {
		t.Error(got)
	}
	for range 5 {
		tracker.Start(t.Context())
	}
	if got := find(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) {
		t.Error(got)
	}
	first, _ := tracker.ByOrdinal(1)
	if err := tracker.Flush(t.Context()); err != nil || tracker.Prune(2) != 3 {
		t.Fatal(err)
	}
	if got := find(); !slices.Equal(got, []uint64{4, 5}) {
		t.Error(got)
	}
	var ns []uint64
	for c := first; c != nil; c = c.Next() { // which Prune takes away from nobody
		ns = append(ns, c.Ordinal())
	}
	if !slices.Equal(ns, []uint64{1, 2, 3, 4, 5}) {
		t.Error(ns)
	}
}

// Of changesets with the same ID the first is found.
func TestFindTheFirst(t *testing.T) {
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{NewID: func(context.Context) (string, error) { return "same", nil }})
	for range 3 {
		start(t, tracker)
	}
	if c, ok := tracker.ByID("same"); !ok || c.Ordinal() != 1 {
		t.Error(c, ok)
	}
}

// If a changeset has a next one, it is complete, although its Start stalls; and whoever
// looks at the tracker finds the entries recorded in the next one.
func TestNextHelps(t *testing.T) {
	tracker, c := opened(t, 1)
	if c.Next() != nil {
		t.Error("a successor of the latest")
	}
	announced := tracker.Announce("next")
	n := c.Next()
	if n != announced {
		t.Fatal(n)
	}
	if _, err := c.Record(2); err != cowchangeset.ErrSealed {
		t.Error(err)
	}
	n.Record(3)
	if got := tracker.Trail().Len(); got != 2 {
		t.Errorf("a trail of %d", got)
	}
}

// What is sealed and neither applied nor aborted is pending.
func TestPending(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	if got := ordinals(tracker.Pending()); got != nil {
		t.Error(got)
	}
	var cs []*cowchangeset.Changeset[int]
	for v := range 7 {
		c, err := tracker.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tracker.Record(v)
		cs = append(cs, c)
	}
	succeeds := func(context.Context, final) error { return nil }
	cs[0].Apply(t.Context(), succeeds)
	cs[1].Abort(t.Context(), nil)
	cs[2].Apply(t.Context(), func(context.Context, final) error { return errDisk })
	cs[3].ApplyEach(t.Context(), func(context.Context, uint64, int) error { return nil })
	m.faults(func(_ context.Context, method, id string) error {
		if method == "Applied" && id == cs[4].ID() {
			return errDisk
		}
		return nil
	})
	cs[4].Apply(t.Context(), succeeds) // and the store does not know it
	if got := ordinals(tracker.Pending()); !slices.Equal(got, []uint64{3, 5, 6}) {
		t.Error(got)
	}
	for range tracker.Pending() {
		break
	}
	err := cs[5].Apply(t.Context(), func(context.Context, final) error {
		if got := ordinals(tracker.Pending()); !slices.Equal(got, []uint64{3, 5, 6}) {
			t.Error(got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// A service goes on with them, in order.
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	if got := ordinals(again.Pending()); !slices.Equal(got, []uint64{3, 5}) {
		t.Error(got)
	}
	m.faults(nil)
	for c := range again.Pending() {
		if err := c.Apply(t.Context(), succeeds); err != nil {
			t.Error(err)
		}
	}
	if got := ordinals(again.Pending()); got != nil {
		t.Error(got)
	}
	m.check(t)
}

// RecordContext is Record for a caller that does not wait for ever.
func TestRecordContext(t *testing.T) {
	type records = func(context.Context, int) (cowchangeset.Receipt, error)
	for method, of := range map[string]func(*cowchangeset.Tracker[int], *cowchangeset.Changeset[int]) records{
		"Tracker.RecordContext": func(tracker *cowchangeset.Tracker[int], _ *cowchangeset.Changeset[int]) records {
			return tracker.RecordContext
		},
		"Changeset.RecordContext": func(_ *cowchangeset.Tracker[int], c *cowchangeset.Changeset[int]) records { return c.RecordContext },
		"Tracker.RecordBatchContext": func(tracker *cowchangeset.Tracker[int], _ *cowchangeset.Changeset[int]) records {
			return func(ctx context.Context, e int) (cowchangeset.Receipt, error) {
				return tracker.RecordBatchContext(ctx, []int{e})
			}
		},
	} {
		t.Run(method, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
			c, _ := tracker.Start(t.Context())
			record := of(tracker, c)
			r, err := record(t.Context(), 1)
			if err != nil || r != (cowchangeset.Receipt{ChangesetID: "1", Ordinal: 1}) || c.Durable() != 1 {
				t.Error(r, err, c.Durable())
			}
			gate := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			m.faults(func(_ context.Context, method, _ string) error {
				cancel(errEnded)
				<-gate
				return nil
			})
			r, err = record(ctx, 2)
			wantStoreError(t, err, "wait", errEnded)
			if r.Seq != 1 || c.Len() != 2 {
				t.Error(r, c.Len())
			}
			if r, err := record(ctx, 3); err != errEnded || r != (cowchangeset.Receipt{}) || c.Len() != 2 {
				t.Error(r, err, c.Len())
			}
			close(gate)
			if err := tracker.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			wantValues(t, m, "1", 1, 2)
			c.Seal(t.Context())
			if _, err := record(t.Context(), 4); !errors.Is(err, cowchangeset.ErrSealed) {
				t.Error(err)
			}
			if p := panicOf(func() { record(nil, 5) }); p != "cowchangeset: "+method+" called with a nil context" {
				t.Error(p)
			}
			m.check(t)
		})
	}
}

// plans returns a tracker whose changesets are called plan-1 and so on.
func plans[E any]() *cowchangeset.Tracker[E] {
	var n atomic.Int64
	return cowchangeset.MustNew(cowchangeset.Config[E]{NewID: func(context.Context) (string, error) { return fmt.Sprint("plan-", n.Add(1)), nil }})
}

// mustStart starts n changesets.
func mustStart[E any](t *testing.T, tracker *cowchangeset.Tracker[E], n int) {
	t.Helper()
	for range n {
		if _, err := tracker.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// places returns what a trail yields.
func places[E any](trail cowchangeset.Trail[E]) (all []place[E]) {
	for r, e := range trail.All() {
		all = append(all, place[E]{r, e})
	}
	return all
}

type place[E any] struct {
	cowchangeset.Receipt
	value E
}

// Writers, starters and readers at once: each trail begins with the one before, and the
// last has every entry at the place that its receipt names.
func TestStressTrail(t *testing.T) {
	const writers, each = 3, 300
	tracker := plans[[2]int]()
	mustStart(t, tracker, 1)
	var left, reads atomic.Int64
	left.Store(writers)
	var made [writers][]place[[2]int]
	crew := newCrew()
	for w := range writers {
		crew.add(func() {
			defer left.Add(-1)
			for k := range each {
				if k%100 == 99 {
					mustStart(t, tracker, 1)
				}
				r, err := tracker.Record([2]int{w, k})
				if err != nil {
					t.Error(err)
				}
				made[w] = append(made[w], place[[2]int]{r, [2]int{w, k}})
				if k%20 == 0 { // so that there are trails in between
					for n := reads.Load(); reads.Load() < n+1; {
						runtime.Gosched()
					}
				}
			}
		})
	}
	lengths := map[int]bool{}
	crew.add(func() {
		var before []place[[2]int]
		for ; left.Load() > 0; reads.Add(1) {
			now := places(tracker.Trail())
			if !slices.Equal(now[:min(len(now), len(before))], before) {
				t.Errorf("a trail of %d entries does not begin with the one before, of %d", len(now), len(before))
			}
			before = now
			lengths[len(now)] = true
		}
	})
	crew.run()
	want := slices.SortedFunc(slices.Values(slices.Concat(made[:]...)), func(a, b place[[2]int]) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Seq, b.Seq))
	})
	if got := places(tracker.Trail()); !slices.Equal(got, want) {
		t.Fatalf("%d entries of %d, or not the same", len(got), len(want))
	}
	if len(lengths) < each/20 {
		t.Errorf("only %d different trails", len(lengths))
	}
}
