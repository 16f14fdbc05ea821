//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// A shadow lets everything through, in every state that it is in, and its
// snapshot says what that is.
func TestShadowRejectsNothing(t *testing.T) {
	c := oneSecond
	c.Shadow = true
	byHand(t, c, func(t *testing.T, s subject) {
		would := func(want ab.State, rejected uint64) {
			t.Helper()
			wantState(t, s.state(), ab.Shadow)
			if got := s.snapshot(); got.State != ab.Shadow || got.Would != want {
				t.Fatalf("%+v, would be %v", got, want)
			}
			if got := s.stats().Rejected; got != rejected {
				t.Fatalf("%d rejected, want %d", got, rejected)
			}
		}
		would(ab.Closed, 0)
		wantVerdict(t, fail(t, s.allow, 2), ab.Tripped)
		would(ab.Open, 0)
		open, late := admit(t, s.allow), admit(t, s.allow)
		would(ab.Open, 2)
		wantVerdict(t, open.Success(), ab.Late)
		wantVerdict(t, late.Failure(), ab.Late)
		wantVerdict(t, admit(t, s.allow).Trip(time.Hour), ab.Late)
		wantVerdict(t, admit(t, s.allow).Done(errBoom), ab.Late)
		wantVerdict(t, admit(t, s.allow).Cancel(), ab.Late)
		would(ab.Open, 5)
		time.Sleep(time.Second)
		would(ab.HalfOpen, 5)
		probe := admit(t, s.allow)
		over := admit(t, s.allow) // one too many
		would(ab.HalfOpen, 6)
		wantVerdict(t, over.Failure(), ab.Late)
		wantVerdict(t, probe.Success(), ab.Recovered)
		would(ab.Closed, 6)
		s.forceOpen()
		would(ab.ForcedOpen, 6)
		wantVerdict(t, admit(t, s.allow).Success(), ab.Late)
		would(ab.ForcedOpen, 7)
		s.disable()
		would(ab.Disabled, 7)
		wantVerdict(t, admit(t, s.allow).Failure(), ab.Counted)
		s.reset()
		would(ab.Closed, 7)
		events := *s.events
		s.events.want(t,
			ab.Event{To: ab.Open, Reason: ab.ReasonThreshold, Failures: 2, Streak: 1, OpenFor: time.Second, Shadow: true},
			ab.Event{From: ab.Open, To: ab.HalfOpen, Reason: ab.ReasonOpenTimeout, Streak: 1, Shadow: true},
			ab.Event{From: ab.HalfOpen, Reason: ab.ReasonRecovered, Streak: 1, Successes: 1, Shadow: true},
			ab.Event{To: ab.ForcedOpen, Reason: ab.ReasonForceOpen, OpenFor: math.MaxInt64, Shadow: true},
			ab.Event{From: ab.ForcedOpen, To: ab.Disabled, Reason: ab.ReasonDisable, Shadow: true},
			ab.Event{From: ab.Disabled, Reason: ab.ReasonReset, Shadow: true})
		if got, want := events[0].String(), "Closed to Open: Threshold (shadow), for 1s"; got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		if got, want := s.stats(), (ab.Stats{Opened: 2, Closed: 2, Rejected: 7}); got.Opened != want.Opened || got.Closed != want.Closed {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// Do and Execute call their functions, and return their results, whatever the
// shadow would do.
func TestShadowRunsCalls(t *testing.T) {
	b := ab.MustNew(ab.Config{Shadow: true, Policy: ab.Consecutive(1), OpenTimeout: -1, DetailedErrors: true})
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Shadow: true, Policy: ab.Consecutive(1), OpenTimeout: -1}})
	for range 10 {
		ran := 0
		if err := b.Do(t.Context(), func(context.Context) error { ran++; return errBoom }); err != errBoom {
			t.Fatal(err)
		}
		if err := g.Do(t.Context(), "k", func(context.Context) error { ran++; return errBoom }); err != errBoom {
			t.Fatal(err)
		}
		if n, err := ab.Execute(b, func() (int, error) { ran++; return 7, nil }); n != 7 || err != nil {
			t.Fatal(n, err)
		}
		panics(t, "boom", func() { b.Do(t.Context(), func(context.Context) error { ran++; panic("boom") }) })
		if ran != 4 {
			t.Fatalf("%d calls were made, want 4", ran)
		}
	}
	if b.Snapshot().Would != ab.Open || g.Snapshot("k").Would != ab.Open || g.IsOpen("k") {
		t.Fatalf("%+v, %+v, %v", b.Snapshot(), g.Snapshot("k"), g.IsOpen("k"))
	}
	if b, g := b.Stats(), g.Stats(); b.Rejected != 29 || g.Rejected != 9 || b.Opened != 1 || g.Opened != 1 {
		t.Fatalf("%+v, %+v", b, g)
	}
}

// A key that is absent is a shadow too, as far as is known without asking for
// its settings.
func TestShadowsOfAbsentKeys(t *testing.T) {
	shadow := ab.Config{Shadow: true, Policy: ab.Consecutive(1)}
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: shadow})
	wantState(t, g.State("k"), ab.Shadow)
	wantState(t, g.Snapshot("k").Would, ab.Closed)
	g.RecordFailure("other")
	wantState(t, g.State("k"), ab.Shadow)
	keyed := ab.MustNewGroup(ab.GroupConfig[string]{PerKey: func(k string) ab.Config {
		c := shadow
		c.Shadow = k == "shadow"
		return c
	}})
	wantState(t, keyed.State("shadow"), ab.Closed)
	for _, k := range []string{"shadow", "real"} {
		keyed.RecordFailure(k)
	}
	wantState(t, keyed.State("shadow"), ab.Shadow)
	wantState(t, keyed.Snapshot("shadow").Would, ab.Open)
	wantState(t, keyed.State("real"), ab.Open)
	if keyed.IsOpen("shadow") || !keyed.IsOpen("real") {
		t.Fatal("want only the real one open")
	}
}

// Settings that were tried in a shadow go live with the state that they have
// led to, and back.
func TestShadowGoesLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ab.Config{Shadow: true, Policy: ab.Consecutive(2), OpenTimeout: time.Second}
		b := ab.MustNew(c)
		live := c
		live.Shadow = false
		fail(t, b.Allow, 2)
		through := admit(t, b.Allow) // would not have been
		update(t, b, live)
		wantState(t, b.State(), ab.Open)
		reject(t, b.Allow, ab.ErrOpen)
		wantVerdict(t, through.Success(), ab.Late)
		time.Sleep(time.Second)
		probe := admit(t, b.Allow)
		update(t, b, c)
		wantState(t, b.State(), ab.Shadow)
		over := admit(t, b.Allow)
		update(t, b, live)
		reject(t, b.Allow, ab.ErrTooManyProbes)
		wantVerdict(t, over.Failure(), ab.Late)
		wantVerdict(t, probe.Success(), ab.Recovered)
		if s := b.Stats(); s.Rejected != 4 {
			t.Fatalf("%+v", s)
		}
	})
}

// Windows run in a shadow as they do without.
func TestShadowCountsInWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		b := ab.MustNew(ab.Config{Shadow: true, Policy: ab.FailureRate(0.5, 4, time.Minute), OpenTimeout: time.Second, OnStateChange: l.add})
		for i := range 4 {
			reportOp(admit(t, b.Allow), i%2 == 1)
		}
		l.want(t, ab.Event{To: ab.Open, Reason: ab.ReasonFailureRate, Failures: 2, Calls: 4, Streak: 1, OpenFor: time.Second, Shadow: true})
	})
}
