//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

func TestAbort(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	tracker.Record(1)
	if c.Reason() != nil {
		t.Error(c.Reason())
	}
	m.faults(func(_ context.Context, method, _ string) error {
		if method == "Abort" {
			return errDisk
		}
		return nil
	})
	if err := c.Abort(t.Context(), errors.New("the plan was wrong")); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if err := c.Apply(t.Context(), func(context.Context, final) error { panic("called") }); err != cowchangeset.ErrAborted {
		t.Error(err)
	}
	m.faults(nil)
	if err := c.Abort(t.Context(), errDisk); err != nil || c.Reason() == nil || c.Reason().Error() != "the plan was wrong" {
		t.Error(err, c.Reason())
	}
	if s := m.has("1"); !s.Aborted || s.Reason != "the plan was wrong" || len(s.Entries) != 1 {
		t.Errorf("%+v", s)
	}
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	if c, open := again.Current(); open || c.Reason() == nil || c.Reason().Error() != "the plan was wrong" {
		t.Error(open, c.Reason())
	}
	m.check(t)

	_, c = opened(t)
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errDisk)
	if err := c.Abort(ended, nil); err != errDisk || c.Reason() != nil {
		t.Error(err, c.Reason())
	}
	if err := c.Abort(t.Context(), nil); err != nil || c.Reason() != cowchangeset.ErrAborted {
		t.Error(err, c.Reason())
	}
}

// The reason of an Abort that was refused is nobody's.
func TestAbortRefused(t *testing.T) {
	_, c := opened(t, 1)
	c.Apply(t.Context(), func(ctx context.Context, _ final) error {
		if err := c.Abort(ctx, errors.New("wrong")); err != cowchangeset.ErrApplying {
			t.Error(err)
		}
		return errDisk
	})
	if err := c.Abort(t.Context(), errors.New("right")); err != nil || c.Reason().Error() != "right" {
		t.Error(err, c.Reason())
	}
}

// mute is an error whose text cannot be had.
type mute struct{ exit bool }

func (m mute) Error() string {
	if m.exit {
		runtime.Goexit()
	}
	panic("mute")
}

// A reason that has no text aborts nothing, and leaves the changeset as it was.
func TestAbortBadReasons(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	for _, exit := range []bool{false, true} {
		left := make(chan struct{})
		go func() {
			defer close(left)
			defer func() { recover() }()
			c.Abort(t.Context(), mute{exit})
		}()
		<-left
	}
	if _, open := tracker.Current(); !open || c.Reason() != nil {
		t.Errorf("open %t, and aborted because of %v", open, c.Reason())
	}
	if _, err := tracker.Record(1); err != nil {
		t.Error(err)
	}
	m.check(t)
}

// reasonless has no text, and still is somebody's reason.
type reasonless struct{}

func (reasonless) Error() string { return "" }

// Until the process ends, Reason is the error that Abort was given.
func TestAbortReason(t *testing.T) {
	for _, why := range []error{errDisk, &cowchangeset.StoreError{Err: errDisk}, reasonless{}} {
		_, c := opened(t)
		c.Abort(t.Context(), why)
		c.Abort(t.Context(), errors.New("another"))
		if c.Reason() != why {
			t.Errorf("%v, want %v", c.Reason(), why)
		}
	}
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	c.Abort(t.Context(), reasonless{})
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := again.Current(); c.Reason() != cowchangeset.ErrAborted {
		t.Error(c.Reason())
	}
}
