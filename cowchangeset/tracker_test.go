//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// numbered returns a tracker whose IDs are "1", "2" and so on.
func numbered[E any]() *cowchangeset.Tracker[E] {
	n := 0
	return cowchangeset.MustNew(cowchangeset.Config[E]{NewID: func(context.Context) (string, error) { n++; return fmt.Sprint(n), nil }})
}

func TestTrackerZero(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	check := func() {
		t.Helper()
		r, err := tracker.Record(1)
		if err != cowchangeset.ErrNoActive || r != (cowchangeset.Receipt{}) || errors.Is(err, cowchangeset.ErrSealed) {
			t.Errorf("Record: %v, %v", r, err)
		}
		if _, err := tracker.RecordBatch([]int{1}); err != cowchangeset.ErrNoActive {
			t.Errorf("RecordBatch: %v", err)
		}
		if c, open := tracker.Current(); c != nil || open {
			t.Errorf("Current: %v, %v", c, open)
		}
		if tracker.IDs() != nil || tracker.Trail().Len() != 0 {
			t.Error("changesets before the first Start")
		}
		for range tracker.Trail().All() {
			t.Error("an entry before the first Start")
		}
	}
	check()
	check()
	c := start(t, &tracker)
	if len(c.ID()) < 20 || c.Ordinal() != 1 || c.Previous() != nil {
		t.Errorf("first changeset %q, number %d, after %v", c.ID(), c.Ordinal(), c.Previous())
	}
}

func TestTrackerStart(t *testing.T) {
	tracker := numbered[string]()
	a := start(t, tracker)
	r, _ := tracker.Record("x")
	if r != (cowchangeset.Receipt{ChangesetID: "1", Ordinal: 1, Seq: 0}) {
		t.Error(r)
	}
	b := start(t, tracker)
	if !isSealed(a) || isSealed(b) || b.Previous() != a || b.Ordinal() != 2 {
		t.Error("Start did not seal the changeset before")
	}
	if r, _ := tracker.Record("y"); r != (cowchangeset.Receipt{ChangesetID: "2", Ordinal: 2, Seq: 0}) {
		t.Error(r)
	}
	if _, err := a.Record("z"); err != cowchangeset.ErrSealed {
		t.Error(err)
	}
	if c, open := tracker.Current(); c != b || !open {
		t.Error("the new changeset is not current")
	}
	wantEntries(t, a, "x")
	wantEntries(t, b, "y")
	if ids := tracker.IDs(); !slices.Equal(ids, []string{"1", "2"}) {
		t.Error(ids)
	}
}

func TestTrackerNoActiveAfterSeal(t *testing.T) {
	tracker := numbered[int]()
	a := start(t, tracker)
	start(t, tracker)
	b, _ := tracker.Current()
	mustSeal(t, b)
	for range 2 {
		_, err := tracker.Record(1)
		var typed *cowchangeset.NoActiveError
		if !errors.Is(err, cowchangeset.ErrNoActive) || !errors.Is(err, cowchangeset.ErrSealed) || errors.Is(err, cowchangeset.ErrConflict) {
			t.Errorf("got %v", err)
		}
		if !errors.As(err, &typed) || *typed != (cowchangeset.NoActiveError{ChangesetID: "2", Ordinal: 2}) {
			t.Errorf("got %#v", err)
		}
		if got := err.Error(); got != `cowchangeset: no active changeset: "2" (number 2) is sealed and has no successor` {
			t.Error(got)
		}
		if _, again := tracker.RecordBatch([]int{1}); !errors.As(again, &typed) || again.Error() != err.Error() {
			t.Error(again)
		}
	}
	if c, open := tracker.Current(); c != b || open {
		t.Error("a sealed changeset is open")
	}
	if a.Len()+b.Len() != 0 {
		t.Error("a failed Record left an entry")
	}
	start(t, tracker)
	if r, err := tracker.Record(1); err != nil || r.Ordinal != 3 {
		t.Error(r, err)
	}
}

func TestTrackerRecordBatch(t *testing.T) {
	tracker := numbered[int]()
	if r, err := tracker.RecordBatch(nil); r != (cowchangeset.Receipt{}) || err != nil {
		t.Error(r, err)
	}
	c := start(t, tracker)
	tracker.Record(1)
	given := []int{2, 3, 4}
	r, err := tracker.RecordBatch(given)
	if err != nil || r != (cowchangeset.Receipt{ChangesetID: "1", Ordinal: 1, Seq: 1}) {
		t.Error(r, err)
	}
	clear(given) // RecordBatch has copied
	if r, _ := tracker.Record(5); r.Seq != 4 {
		t.Errorf("seq %d after a batch", r.Seq)
	}
	wantEntries(t, c, 1, 2, 3, 4, 5)
}

// Checks L9.

// Entries without a size could be so many that their number reaches the seal
// bit.
func TestTrackerRecordBatchTooLong(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("no slice is that long")
	}
	var tracker cowchangeset.Tracker[struct{}]
	c := start(t, &tracker)
	n := uint64(1)<<40 + 1
	p := mustPanic(t, func() { tracker.RecordBatch(make([]struct{}, n)) })
	if p != "cowchangeset: Tracker.RecordBatch called with more than 2^40 entries" {
		t.Error(p)
	}
	if _, open := tracker.Current(); !open || c.Reserved() != 0 {
		t.Error("a batch that is too long changed something")
	}
}

func TestTrackerStartAfter(t *testing.T) {
	ids := 0
	tracker := cowchangeset.MustNew(cowchangeset.Config[int]{NewID: func(context.Context) (string, error) { ids++; return fmt.Sprint(ids), nil }})
	foreign := one[int](t)
	ctx := t.Context()
	if _, err := tracker.StartAfter(ctx, foreign); err != cowchangeset.ErrConflict {
		t.Error("foreign on an empty tracker:", err)
	}
	a, err := tracker.StartAfter(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, prev := range map[string]*cowchangeset.Changeset[int]{"nil": nil, "foreign": foreign} {
		if _, err := tracker.StartAfter(ctx, prev); err != cowchangeset.ErrConflict {
			t.Error(name, err)
		}
	}
	b, err := tracker.StartAfter(ctx, a)
	if err != nil || b.Previous() != a || !isSealed(a) {
		t.Fatal(err)
	}
	if _, err := tracker.StartAfter(ctx, a); err != cowchangeset.ErrConflict {
		t.Error("one that has a successor:", err)
	}
	mustSeal(t, b)
	if _, err := tracker.StartAfter(ctx, b); err != nil {
		t.Error("one that is sealed, but the latest:", err)
	}
	if ids != 3 || !slices.Equal(tracker.IDs(), []string{"1", "2", "3"}) {
		t.Errorf("%d IDs spent on %v", ids, tracker.IDs())
	}
	if isSealed(foreign) {
		t.Error("a foreign changeset was sealed")
	}
}

func TestTrackerStartContext(t *testing.T) {
	tracker := numbered[int]()
	c := start(t, tracker)
	for name, f := range map[string]func(context.Context) error{
		"Start":      func(ctx context.Context) error { _, err := tracker.Start(ctx); return err },
		"StartAfter": func(ctx context.Context) error { _, err := tracker.StartAfter(ctx, c); return err },
	} {
		if p := fmt.Sprint(mustPanic(t, func() { f(nil) })); p != "cowchangeset: Tracker."+name+" called with a nil context" {
			t.Error(p)
		}
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if err := f(ctx); err != cause {
			t.Error(name, err)
		}
	}
	if now, open := tracker.Current(); now != c || !open {
		t.Error("a failed Start changed the current changeset")
	}
}

// NewID runs before anything changes, whatever it does.
func TestTrackerNewID(t *testing.T) {
	var newID func(context.Context) (string, error)
	tracker, err := cowchangeset.New(cowchangeset.Config[int]{NewID: func(ctx context.Context) (string, error) { return newID(ctx) }})
	if err != nil {
		t.Fatal(err)
	}
	newID = func(context.Context) (string, error) { return "a", nil }
	a := start(t, tracker)
	check := func() {
		t.Helper()
		if c, open := tracker.Current(); c != a || !open || len(tracker.IDs()) != 1 {
			t.Error("a failed Start changed the tracker")
		}
	}
	newID = func(context.Context) (string, error) { return "", nil }
	_, err = tracker.Start(t.Context())
	_, after := tracker.StartAfter(t.Context(), a)
	if err == nil || err.Error() != "cowchangeset: Config.NewID returned an empty ID" || after != err {
		t.Error(err, after)
	}
	check()
	mine := errors.New("mine")
	newID = func(context.Context) (string, error) { return "unused", mine }
	_, err = tracker.Start(t.Context())
	_, after = tracker.StartAfter(t.Context(), a)
	if err != mine || after != mine {
		t.Error(err, after)
	}
	check()
	newID = func(context.Context) (string, error) { panic("mine") }
	if p := mustPanic(t, func() { tracker.Start(t.Context()) }); p != "mine" {
		t.Error(p)
	}
	check()
	newID = func(context.Context) (string, error) { runtime.Goexit(); return "", nil }
	goexit(t, func() { tracker.Start(context.Background()) })
	check()
	ctx, cancel := context.WithCancel(t.Context())
	newID = func(context.Context) (string, error) { cancel(); return "too late", nil }
	if _, err := tracker.Start(ctx); err != context.Canceled {
		t.Error(err)
	}
	check()
	newID = func(context.Context) (string, error) { // another Start overtakes this one
		newID = func(context.Context) (string, error) { return "b", nil }
		start(t, tracker)
		return "c", nil
	}
	if _, err := tracker.StartAfter(t.Context(), a); err != cowchangeset.ErrConflict {
		t.Error(err)
	}
	newID = func(context.Context) (string, error) {
		newID = func(context.Context) (string, error) { return "d", nil }
		start(t, tracker)
		return "e", nil
	}
	e := start(t, tracker)
	newID = func(context.Context) (string, error) { // another Start overtakes this one, and stalls
		tracker.Announce("f")
		return "g", nil
	}
	if _, err := tracker.StartAfter(t.Context(), e); err != cowchangeset.ErrConflict || !isSealed(e) {
		t.Error("a conflict with a Start that has not taken effect:", err)
	}
	if ids := tracker.IDs(); !slices.Equal(ids, []string{"a", "b", "d", "e", "f"}) {
		t.Error(ids)
	}
}

// NewID gets the context of the Start or StartAfter that calls it, with a store and
// without.
func TestTrackerNewIDContext(t *testing.T) {
	type key struct{}
	for _, store := range []cowchangeset.Store[int]{nil, newMemory()} {
		tracker := cowchangeset.MustNew(cowchangeset.Config[int]{Store: store, NewID: func(ctx context.Context) (string, error) {
			return ctx.Value(key{}).(string), nil
		}})
		a, err := tracker.Start(context.WithValue(t.Context(), key{}, "a"))
		if err != nil || a.ID() != "a" {
			t.Error(a, err)
		}
		b, err := tracker.StartAfter(context.WithValue(t.Context(), key{}, "b"), a)
		if err != nil || b.ID() != "b" {
			t.Error(b, err)
		}
	}
}

// Checks T1, T2, T3, T4.

// The steps of a Start: the successor is known before the seal. That the seal
// comes before anybody is led to the successor is for the model checker to see.
func TestTrackerStartSteps(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	a := start(t, &tracker)
	if tracker.Help(a) {
		t.Error("a step of no Start")
	}
	b := tracker.Announce("b")
	if tracker.Swung() != a || isSealed(a) {
		t.Error("announcing did more")
	}
	if !tracker.Help(a) || tracker.Swung() != b || !isSealed(a) {
		t.Error("the other steps are not the seal and the swing")
	}
	tracker.Help(a) // a helper that is late
	if tracker.Swung() != b {
		t.Error("a late helper went back")
	}
}

// Checks T1, T2, T3, T4.

// A Start that stalls after announcing its changeset has not taken effect until
// somebody helps, and then has.
func TestTrackerStalledStart(t *testing.T) {
	type tracker = cowchangeset.Tracker[int]
	for name, help := range map[string]func(*tracker){
		"Start":      func(tr *tracker) { tr.Start(context.Background()) },
		"StartAfter": func(tr *tracker) { tr.StartAfter(context.Background(), nil) },
		"IDs":        func(tr *tracker) { tr.IDs() },
	} {
		t.Run(name, func(t *testing.T) {
			var tr tracker
			a := start(t, &tr)
			tr.Record(1)
			b := tr.Announce("b")
			if r, err := tr.Record(2); err != nil || r.Ordinal != 1 {
				t.Errorf("Record under a stalled Start: %v, %v", r, err)
			}
			if c, open := tr.Current(); c != a || !open {
				t.Error("Current under a stalled Start")
			}
			if n := tr.Trail().Len(); n != 2 {
				t.Errorf("trail of %d entries", n)
			}
			help(&tr)
			wantEntries(t, a, 1, 2)
			if !isSealed(a) || b.Previous() != a {
				t.Error("nobody helped")
			}
			if r, err := tr.Record(3); err != nil || r.Ordinal < 2 {
				t.Error(r, err)
			}
		})
	}
	for name, first := range map[string]func(*tracker) (any, any){
		"Record":  func(tr *tracker) (any, any) { r, _ := tr.Record(1); return r.Ordinal, uint64(1) },
		"Current": func(tr *tracker) (any, any) { _, open := tr.Current(); return open, true },
	} {
		var tr tracker
		tr.Announce("a")
		if got, want := first(&tr); got != want {
			t.Errorf("%s under a stalled first Start: got %v", name, got)
		}
	}
	// A stalled Seal.
	var sealing tracker
	start(t, &sealing).SealBit()
	if _, open := sealing.Current(); open {
		t.Error("a sealed changeset is open")
	}
	// The stalled Start of a sealed changeset's successor has taken effect.
	var tr tracker
	mustSeal(t, start(t, &tr))
	b := tr.Announce("b")
	if n := tr.Trail().Len(); n != 0 {
		t.Error(n)
	}
	if c, open := tr.Current(); c != b || !open {
		t.Error("the announced successor of a sealed changeset is not current")
	}
}

// A writer stalled in one changeset while the next one starts records there.
func TestTrackerStalledWriterMovesOn(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	a := start(t, &tracker)
	early, _ := a.Reserve(1)
	late, _ := a.Reserve(2)
	b := start(t, &tracker)
	if !early.Put() { // reserved before the seal, not yet passed by a cut
		t.Error("a writer failed to publish without reason")
	}
	wantEntries(t, a, 1)
	if late.Put() {
		t.Error("a sealed changeset that was read has changed")
	}
	tracker.Record(2) // what Record does then
	wantEntries(t, a, 1)
	wantEntries(t, b, 2)
}

func TestTrackerTrail(t *testing.T) {
	tracker := numbered[string]()
	start(t, tracker)
	tracker.Record("a")
	start(t, tracker)
	empty := start(t, tracker)
	tracker.RecordBatch([]string{"b", "c"})
	trail := tracker.Trail()
	tracker.Record("later")
	mustSeal(t, empty)
	check := func(trail cowchangeset.Trail[string], want string) {
		t.Helper()
		got, n := "", 0
		for r, e := range trail.All() {
			got += fmt.Sprintf("%s/%d/%d=%s ", r.ChangesetID, r.Ordinal, r.Seq, e)
			n++
		}
		if got != want || trail.Len() != n {
			t.Errorf("trail of %d entries: %q", trail.Len(), got)
		}
	}
	check(trail, "1/1/0=a 3/3/0=b 3/3/1=c ")
	check(tracker.Trail(), "1/1/0=a 3/3/0=b 3/3/1=c 3/3/2=later ")
	for range trail.All() {
		break
	}
}
