//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// A nil argument is a panic that names it: no caller has to guess from a dereference.
func TestNilArguments(t *testing.T) {
	tracker, _ := kept(cowchangeset.Config[int]{})
	c, err := tracker.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole := func(context.Context, final) error { return nil }
	each := func(context.Context, uint64, int) error { return nil }
	var none context.Context
	for want, f := range map[string]func(){
		"Changeset.Apply called with a nil context":      func() { c.Apply(none, whole) },
		"Changeset.Apply called with a nil function":     func() { c.Apply(t.Context(), nil) },
		"Changeset.ApplyEach called with a nil context":  func() { c.ApplyEach(none, each) },
		"Changeset.ApplyEach called with a nil function": func() { c.ApplyEach(t.Context(), nil) },
		"Changeset.Abort called with a nil context":      func() { c.Abort(none, nil) },
		"Changeset.Follow called with a nil context":     func() { c.Follow(none, 0) },
		"Tracker.Flush called with a nil context":        func() { tracker.Flush(none) },
		"Trail.Fetch called with a nil context":          func() { tracker.Trail().Fetch(none) },
		"Resume called with a nil context":               func() { cowchangeset.Resume(none, cowchangeset.Config[int]{Store: newMemory()}) },
	} {
		if p := fmt.Sprint(mustPanic(t, f)); p != "cowchangeset: "+want {
			t.Errorf("%s, want %s", p, want)
		}
	}
	if r, err := tracker.Record(1); err != nil || r.ChangesetID != c.ID() {
		t.Error("something has changed:", r, err)
	}
}

func TestMustNewPanics(t *testing.T) {
	bad := cowchangeset.Config[int]{Async: true} // without a store
	_, want := cowchangeset.New(bad)
	if p := mustPanic(t, func() { cowchangeset.MustNew(bad) }); want == nil || fmt.Sprint(p) != want.Error() {
		t.Errorf("panics with %v, want %v", p, want)
	}
}

// Without a store there is nothing to wait for, and nothing durable.
func TestNoStore(t *testing.T) {
	tracker, c := opened(t, 1, 2)
	if err := tracker.Flush(t.Context()); err != nil || c.Durable() != 0 {
		t.Error(err, c.Durable())
	}
	tracker, m := kept(cowchangeset.Config[int]{})
	if err := tracker.Flush(t.Context()); err != nil || len(m.calls) != 0 {
		t.Error("nothing was recorded:", err, m.calls)
	}
}

// A context that ends between two entries ends ApplyEach there, and the next goes
// on.
func TestApplyEachEndsBetweenEntries(t *testing.T) {
	_, c := opened(t, 0, 1, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	var got []int
	note := func(_ context.Context, _ uint64, v int) error {
		got = append(got, v)
		cancel(errDisk)
		return nil
	}
	if err := c.ApplyEach(ctx, note); err != errDisk || c.Applied() != 1 {
		t.Error(err, c.Applied())
	}
	if err := c.ApplyEach(ctx, note); err != errDisk || c.Applied() != 1 {
		t.Error(err, c.Applied())
	}
	if err := c.ApplyEach(t.Context(), note); err != nil || fmt.Sprint(got) != "[0 1 2]" {
		t.Error(err, got)
	}
}

// An Apply of an aborted changeset returns ErrAborted, and not the error of a store
// that fails as well.
func TestAbortedComesBeforeTheStore(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	m.faults(func(context.Context, string, string) error { return errDisk })
	if err := c.Abort(t.Context(), nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if err := c.Apply(t.Context(), func(context.Context, final) error { panic("called") }); err != cowchangeset.ErrAborted {
		t.Error(err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errEnded)
	if err := c.Apply(ended, func(context.Context, final) error { panic("called") }); err != errEnded {
		t.Error(err)
	}
}

var errEnded = errors.New("ended")

// A Start whose context is done takes no ID, makes nothing, and says why, also where it
// would be in conflict.
func TestStartInAContextThatIsDone(t *testing.T) {
	var tracker cowchangeset.Tracker[int]
	first, err := tracker.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := tracker.Start(done); c != nil || err != context.Canceled {
		t.Error("Start:", c, err)
	}
	if c, err := tracker.StartAfter(done, nil); c != nil || err != context.Canceled {
		t.Error("StartAfter:", c, err)
	}
	if first.Next() != nil || first.IsSealed() {
		t.Error("something has changed")
	}
}

// A context that ends while Apply seals ends Apply before its function, and says why.
func TestApplyEndsBeforeItsFunction(t *testing.T) {
	_, c := opened(t, 1)
	until, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ctx := asked{until, func() {
		if c.IsSealed() {
			cancel(errEnded)
		}
	}}
	if err := c.Apply(ctx, func(context.Context, final) error { panic("called") }); err != errEnded {
		t.Error(err)
	}
}

// asked is a context that does something when somebody asks whether it has ended.
type asked struct {
	context.Context
	do func()
}

func (a asked) Err() error { a.do(); return a.Context.Err() }
