//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// subjects runs f with a Breaker, with a key of a Group that forgets none.
func subjects(t *testing.T, c ab.Config, f func(t *testing.T, allow allower, reset func())) {
	t.Run("Breaker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := ab.MustNew(c)
			f(t, allow(b), b.Reset)
		})
	})
	t.Run("Group", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c, ForgetAfter: -1})
			f(t, keyed(g, "k"), func() { g.Reset("k") })
		})
	})
}

var second = ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Second, CloseAfter: 2}

// T17, T22: a call admitted while closed says nothing once the breaker has
// opened, is half-open, or has closed again.
//
// Reported bug 17, Polly: old calls close, prolong or repeat it.
func TestT17_LateResults(t *testing.T) {
	reports := map[string]func(permit) ab.Verdict{
		"success": permit.Success,
		"failure": permit.Failure,
		"cancel":  permit.Cancel,
		"ignored": func(p permit) ab.Verdict { return p.Report(ab.Ignored) },
		"error":   func(p permit) ab.Verdict { return p.Done(errBoom) },
	}
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			subjects(t, second, func(t *testing.T, allow allower, reset func()) {
				var old [5]permit
				for i := range old {
					old[i] = admit(t, allow)
				}
				wantVerdict(t, fail(t, allow, 2), ab.Tripped)
				wantVerdict(t, report(old[0]), ab.Late) // open
				reject(t, allow, ab.ErrOpen)
				time.Sleep(time.Second)
				wantVerdict(t, report(old[1]), ab.Late) // open, time has passed
				p := admit(t, allow)
				wantVerdict(t, report(old[2]), ab.Late) // half-open
				reject(t, allow, ab.ErrTooManyProbes)   // T18, T19: gave no slot back
				wantVerdict(t, p.Success(), ab.Counted)
				wantVerdict(t, report(old[3]), ab.Late)
				wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
				wantVerdict(t, report(old[4]), ab.Late) // closed again
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				wantVerdict(t, fail(t, allow, 1), ab.Tripped)
			})
		})
	}
}

// T20, T21: an old success does not close an open breaker before its time, and
// an old failure does not void a healthy probe.
//
// Reported bug 21, cep21/circuit: an old failure voids a probe.
func TestT21_OldResultsAndProbes(t *testing.T) {
	subjects(t, second, func(t *testing.T, allow allower, reset func()) {
		ok, bad := admit(t, allow), admit(t, allow)
		fail(t, allow, 2)
		wantVerdict(t, ok.Success(), ab.Late)
		reject(t, allow, ab.ErrOpen)
		time.Sleep(time.Second)
		probe := admit(t, allow)
		wantVerdict(t, bad.Failure(), ab.Late)
		wantVerdict(t, probe.Success(), ab.Counted)
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
	})
}

// T15: what was admitted before a reset says nothing after it.
//
// Reported bug 15, defect report: a concurrent reset is lost.
func TestT15_ResetVoidsResults(t *testing.T) {
	subjects(t, second, func(t *testing.T, allow allower, reset func()) {
		absent := admit(t, allow)
		fail(t, allow, 1)
		present := admit(t, allow)
		reset()
		wantVerdict(t, absent.Failure(), ab.Late)
		wantVerdict(t, present.Failure(), ab.Late)
		wantVerdict(t, present.Success(), ab.Late)
		wantVerdict(t, fail(t, allow, 1), ab.Counted) // it is the first again
		now := admit(t, allow)
		reset()
		reset()
		wantVerdict(t, now.Failure(), ab.Late)
	})
}

// T57: a reset while open stays in force when the open time has passed.
//
// Reported bug 57, mercari: an old timer half-opens.
func TestT57_ResetOutlivesTheDeadline(t *testing.T) {
	subjects(t, second, func(t *testing.T, allow allower, reset func()) {
		fail(t, allow, 2)
		reset()
		p := admit(t, allow)
		time.Sleep(2 * time.Second)
		wantVerdict(t, p.Failure(), ab.Counted)
		wantVerdict(t, fail(t, allow, 1), ab.Tripped)
	})
}

// T13, T14: only a success in between clears the count, and time does not.
//
// Reported bug 14, gobreaker: failures in a row fade with a window.
// Checks I2, I5.
func TestT14_ConsecutiveIsNeitherCumulativeNorWindowed(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.Consecutive(3)}, func(t *testing.T, allow allower, reset func()) {
		for range 10 {
			wantVerdict(t, fail(t, allow, 2), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		}
		for range 2 {
			wantVerdict(t, fail(t, allow, 1), ab.Counted)
			time.Sleep(1000 * time.Hour)
		}
		wantVerdict(t, admit(t, allow).Cancel(), ab.Counted)
		wantVerdict(t, fail(t, allow, 1), ab.Tripped)
	})
}

// T24: the one who reports learns what became of it.
//
// Reported bug 24, gobreaker: late results vanish silently.
func TestT24_Verdicts(t *testing.T) {
	subjects(t, second, func(t *testing.T, allow allower, reset func()) {
		wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		wantVerdict(t, admit(t, allow).Done(context.Canceled), ab.Counted) // T61
		wantVerdict(t, admit(t, allow).Done(fmt.Errorf("x: %w", context.Canceled)), ab.Counted)
		wantVerdict(t, admit(t, allow).Done(context.DeadlineExceeded), ab.Counted)
		wantVerdict(t, admit(t, allow).Done(errBoom), ab.Tripped)
	})
}

// Report is Success, Cancel or Failure, and Failure for what is no Outcome.
func TestPermitReport(t *testing.T) {
	subjects(t, second, func(t *testing.T, allow allower, reset func()) {
		wantVerdict(t, ab.Permit{}.Report(ab.Success), ab.Late)
		report := func(o ab.Outcome, want ab.Verdict) { t.Helper(); wantVerdict(t, admit(t, allow).Report(o), want) }
		report(ab.Failure, ab.Counted)
		report(ab.Ignored, ab.Counted)
		report(ab.Outcome(77), ab.Tripped) // the failure before was not cleared
		time.Sleep(time.Second)
		report(ab.Ignored, ab.Counted) // and gives the slot back
		report(ab.Success, ab.Counted)
		report(ab.Success, ab.Recovered)
		report(ab.Failure, ab.Counted)
		report(ab.Success, ab.Counted) // clears
		report(ab.Failure, ab.Counted)
		report(ab.Failure, ab.Tripped)
	})
}

// T48: the smallest settings are no special case.
//
// Reported bug 48, Resilience4j: smallest settings crash.
func TestT48_SmallestSettings(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Millisecond, ProbeTimeout: 1}, func(t *testing.T, allow allower, reset func()) {
		for range 3 {
			wantVerdict(t, fail(t, allow, 1), ab.Tripped)
			reject(t, allow, ab.ErrOpen)
			time.Sleep(time.Millisecond)
			p := admit(t, allow)
			reject(t, allow, ab.ErrTooManyProbes)
			wantVerdict(t, p.Success(), ab.Recovered)
		}
	})
}
