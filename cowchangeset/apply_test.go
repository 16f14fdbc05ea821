//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset"
)

type final = cowchangeset.Final[int]

func opened(t *testing.T, vs ...int) (*cowchangeset.Tracker[int], *cowchangeset.Changeset[int]) {
	tracker := new(cowchangeset.Tracker[int])
	c, err := tracker.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		tracker.Record(v)
	}
	return tracker, c
}

// Reported bug 21, Sourcegraph: nothing can be queued during an apply.
// Apply seals, and a success is the last.
func TestApply(t *testing.T) {
	tracker, c := opened(t, 1, 2)
	calls := 0
	err := c.Apply(t.Context(), func(ctx context.Context, f final) error {
		calls++
		if _, err := c.Record(3); err != cowchangeset.ErrSealed {
			t.Error(err)
		}
		if err := c.Apply(ctx, func(context.Context, final) error { panic("called") }); err != cowchangeset.ErrApplying {
			t.Error(err)
		}
		if err := c.Abort(ctx, nil); err != cowchangeset.ErrApplying {
			t.Error(err)
		}
		next, err := tracker.Start(ctx) // applying delays no Start
		if err != nil {
			t.Error(err)
		}
		if r, err := tracker.Record(4); err != nil || r.ChangesetID != next.ID() {
			t.Error(r, err)
		}
		if got := values(t, f.All()); !slices.Equal(got, []int{1, 2}) {
			t.Error(got)
		}
		return nil
	})
	if err != nil || calls != 1 || c.Applied() != cowchangeset.AllApplied {
		t.Error(err, calls, c.Applied())
	}
	for _, err := range []error{
		c.Apply(t.Context(), func(context.Context, final) error { panic("called") }),
		c.ApplyEach(t.Context(), func(context.Context, uint64, int) error { panic("called") }),
		c.Abort(t.Context(), nil),
	} {
		if err != cowchangeset.ErrApplied {
			t.Error(err)
		}
	}
}

// The function gets the context of the call, with its values and its end.
func TestApplyPassesItsContextOn(t *testing.T) {
	type key struct{}
	want := context.WithValue(t.Context(), key{}, 1)
	check := func(ctx context.Context) error {
		if ctx != want {
			t.Errorf("the function gets %v", ctx)
		}
		return nil
	}
	_, c := opened(t, 1)
	if err := c.Apply(want, func(ctx context.Context, _ final) error { return check(ctx) }); err != nil {
		t.Error(err)
	}
	_, c = opened(t, 1)
	if err := c.ApplyEach(want, func(ctx context.Context, _ uint64, _ int) error { return check(ctx) }); err != nil {
		t.Error(err)
	}
}

// However the function fails, the changeset may be applied again.
func TestApplyFails(t *testing.T) {
	_, c := opened(t, 1)
	for name, fail := range map[string]func() error{
		"error": func() error { return errDisk }, "panic": func() error { panic(errDisk) }, "Goexit": func() error { runtime.Goexit(); return nil },
	} {
		done, err, thrown := make(chan struct{}), error(nil), any(nil)
		go func() {
			defer close(done)
			defer func() { thrown = recover() }()
			err = c.Apply(t.Context(), func(context.Context, final) error { return fail() })
		}()
		<-done
		if name == "error" && err != errDisk || name == "panic" && thrown != errDisk || name != "error" && err != nil {
			t.Errorf("%s: %v, %v", name, err, thrown)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errDisk)
	if err := c.Apply(ended, func(context.Context, final) error { panic("called") }); err != errDisk {
		t.Error(err)
	}
	if err := c.Apply(t.Context(), func(context.Context, final) error { return nil }); err != nil {
		t.Error(err)
	}
}

// Checks A1, A2.

// Reported bug 19, Terraform, Liquibase, Flyway: a plan is applied twice, or lost halfway.
// Terraform #24078, Liquibase, Flyway: of many calls of Apply at once, one applies.
func TestStressAppliedOnce(t *testing.T) {
	for range 200 {
		_, c := opened(t, 1)
		var running, ran, aborted atomic.Int32
		together(6, func(g int) {
			if g == 5 {
				switch err := c.Abort(t.Context(), errDisk); err {
				case nil:
					aborted.Add(1)
				case cowchangeset.ErrApplied, cowchangeset.ErrApplying:
				default:
					t.Error(err)
				}
				return
			}
			err := c.Apply(t.Context(), func(context.Context, final) error {
				if running.Add(1) != 1 {
					t.Error("two at a time")
				}
				runtime.Gosched()
				running.Add(-1)
				ran.Add(1)
				return nil
			})
			switch err {
			case nil, cowchangeset.ErrApplied, cowchangeset.ErrApplying, cowchangeset.ErrAborted:
			default:
				t.Error(err)
			}
		})
		if ran.Load()+aborted.Load() != 1 {
			t.Fatalf("applied %d times, aborted %d times", ran.Load(), aborted.Load())
		}
	}
}

// Reported bug 19, Terraform, Liquibase, Flyway: a plan is applied twice, or lost halfway.
// Entry by entry, a failure is where the next call goes on; killed in the middle,
// as in Terraform #20718, Resume knows where.
func TestApplyEach(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	for v := range 6 {
		tracker.Record(v)
	}
	var got []int
	apply := func(c *cowchangeset.Changeset[int], until int) error {
		return c.ApplyEach(t.Context(), func(_ context.Context, seq uint64, v int) error {
			if v == until {
				return errDisk
			}
			if int(seq) != v {
				t.Errorf("%d has Seq %d", v, seq)
			}
			got = append(got, v)
			return nil
		})
	}
	if err := apply(c, 2); err != errDisk || c.Applied() != 2 {
		t.Error(err, c.Applied())
	}
	m.lateFaults(func(_ context.Context, method, _ string) error {
		if method == "Applied" {
			return errDisk
		}
		return nil
	})
	if err := apply(c, 4); !errors.Is(err, cowchangeset.ErrStore) || c.Applied() != 3 { // stops when the store does not know it
		t.Error(err, c.Applied())
	}
	m.lateFaults(nil)
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	c, open := again.Current()
	if c.Applied() != 3 || open {
		t.Error(c.Applied(), open)
	}
	if err := apply(c, 5); err != errDisk {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	err = c.ApplyEach(ended, func(_ context.Context, _ uint64, v int) error { got = append(got, v); cancel(); return nil })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cowchangeset.ErrStore) {
		t.Error(err) // it was the last, and the store may not know yet
	}
	if err := apply(c, -1); err != nil {
		t.Error(err)
	}
	if err := apply(c, -1); err != cowchangeset.ErrApplied || !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
		t.Error(err, got)
	}
	if m.has("1").Applied != cowchangeset.AllApplied {
		t.Error("the store does not know")
	}
	m.check(t)
}

// Reported bug 19, Terraform, Liquibase, Flyway: a plan is applied twice, or lost halfway.
// If the store could not be told that all is applied, the next Apply tells it and
// does not apply again.
func TestApplyIsNotRepeatedForTheStore(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	m.faults(func(_ context.Context, method, _ string) error {
		if method == "Applied" {
			return errDisk
		}
		return nil
	})
	calls := 0
	apply := func() error { return c.Apply(t.Context(), func(context.Context, final) error { calls++; return nil }) }
	if err := apply(); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if err := c.Abort(t.Context(), nil); err != cowchangeset.ErrApplied {
		t.Error(err)
	}
	m.faults(nil)
	if err := apply(); err != nil || calls != 1 || m.has("1").Applied != cowchangeset.AllApplied {
		t.Error(err, calls)
	}
	if err := apply(); err != cowchangeset.ErrApplied {
		t.Error(err)
	}
	m.check(t)
}

// Reported bug 22, xsync: an idle consumer spins.
// A Follow yields what there is and what comes, and ends at the seal.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, c := opened(t, 10, 11)
		var mu sync.Mutex
		var got []string
		var follows sync.WaitGroup
		for from := range uint64(4) {
			follows.Go(func() {
				for seq, v := range c.Follow(t.Context(), from) {
					mu.Lock()
					got = append(got, fmt.Sprint(from, ": ", seq, " ", v))
					mu.Unlock()
				}
			})
		}
		seen := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			s := slices.Sorted(slices.Values(got))
			got = nil
			return s
		}
		want := func(want ...string) {
			t.Helper()
			if got := seen(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		want("0: 0 10", "0: 1 11", "1: 1 11")
		tracker.Record(12)
		want("0: 2 12", "1: 2 12", "2: 2 12")
		tracker.RecordBatch([]int{13, 14})
		want("0: 3 13", "0: 4 14", "1: 3 13", "1: 4 14", "2: 3 13", "2: 4 14", "3: 3 13", "3: 4 14")
		tracker.Start(t.Context())
		tracker.Record(15) // into the next one
		follows.Wait()
		want()
		for seq := range c.Follow(t.Context(), 4) {
			if seq != 4 {
				t.Error(seq)
			}
		}
	})
}

// Reported bug 22, xsync: an idle consumer spins.
// A Follow ends with its context and with its loop, and holds up nobody.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, c := opened(t, 1, 2, 3)
		for range c.Follow(t.Context(), 0) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		n, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			for range c.Follow(ctx, 0) {
				n++
			}
		}()
		synctest.Wait()
		cancel()
		<-done
		for range c.Follow(ctx, 0) {
			t.Error("yields though its context has ended")
		}
		tracker.Record(4)
		parked := make(chan struct{})
		go func() {
			for range c.Follow(t.Context(), 0) {
				<-parked
			}
		}()
		synctest.Wait()
		tracker.Record(5)
		if f, err := c.Seal(t.Context()); n != 3 || f.Len() != 5 || err != nil {
			t.Error(n, f.Len(), err)
		}
		close(parked)
	})
}

// A Follow that writers wake misses nothing and repeats nothing.
func TestStressFollow(t *testing.T) {
	for range 20 {
		tracker, c := opened(t)
		var follows sync.WaitGroup
		got := make([][]int, 3)
		for i := range got {
			follows.Go(func() {
				last := -1
				for seq, v := range c.Follow(t.Context(), 0) {
					if int(seq) <= last {
						t.Errorf("Seq %d after %d", seq, last)
					}
					last = int(seq)
					got[i] = append(got[i], v)
				}
			})
		}
		together(3, func(g int) {
			for i := range 200 {
				if i%10 == 0 {
					tracker.RecordBatch([]int{g, g, g})
				} else {
					tracker.Record(g)
				}
			}
		})
		f, _ := c.Seal(t.Context())
		follows.Wait()
		for i := range got {
			if !slices.Equal(got[i], values(t, f.All())) {
				t.Fatalf("tail %d has %d entries, of %d", i, len(got[i]), f.Len())
			}
		}
	}
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		synctest.Wait() // a call of the store that has begun may still fail
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
	})
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
