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

// halfOpened returns calls that were admitted while the breaker was closed,
// and leaves it half-open with its probes in flight.
func halfOpened(t *testing.T, allow allower, old, probes int) (permits, inFlight []permit) {
	t.Helper()
	for range old {
		permits = append(permits, admit(t, allow))
	}
	open(t, allow)
	for range probes {
		inFlight = append(inFlight, admit(t, allow))
	}
	return permits, inFlight
}

// everyReport is what can be reported of a call, in turn.
func everyReport(i int) func(permit) ab.Verdict {
	return []func(permit) ab.Verdict{
		permit.Success, permit.Failure, permit.Cancel,
		func(p permit) ab.Verdict { return p.Done(errBoom) },
		func(p permit) ab.Verdict { return p.Trip(time.Hour) },
	}[i%5]
}

// T9: failures that are reported while the breaker opens, or is open, do not
// keep it open: when its time has passed, it takes a probe.
//
// Reported bug 9, breaker (Ruby): a failure during opening: open for ever.
func TestT9_FailuresWhileOpenProlongNothing(t *testing.T) {
	byHand(t, ab.Config{Policy: ab.Consecutive(3), OpenTimeout: time.Second}, func(t *testing.T, s subject) {
		for range 3 {
			var old []permit
			for range 13 {
				old = append(old, admit(t, s.allow))
			}
			for i, want := range []ab.Verdict{ab.Counted, ab.Counted, ab.Tripped, ab.Late} {
				wantVerdict(t, old[i].Failure(), want)
			}
			for i := range 9 {
				time.Sleep(100 * time.Millisecond)
				wantVerdict(t, old[4+i].Failure(), ab.Late)
				wantVerdict(t, s.fail(), ab.Late)
				s.left(t, time.Second-time.Duration(i+1)*100*time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond)
			wantVerdict(t, admit(t, s.allow).Success(), ab.Recovered)
		}
	})
}

// T18: results of calls from before the opening do not add to the probes that a
// half-open breaker admits, however many there are.
//
// Reported bug 18, Failsafe-go: old results admit more probes.
func TestT18_OldResultsAdmitNoProbes(t *testing.T) {
	subjects(t, probing(2, 3, time.Hour), func(t *testing.T, allow allower, reset func()) {
		old, probes := halfOpened(t, allow, 10, 2)
		for i, p := range old {
			wantVerdict(t, everyReport(i)(p), ab.Late)
			reject(t, allow, ab.ErrTooManyProbes)
		}
		wantVerdict(t, probes[0].Success(), ab.Counted)
		wantVerdict(t, probes[1].Success(), ab.Counted)
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered) // the third, and no old one was counted
	})
}

// T19: a permit from before the opening that is given back gives no probe's
// place back.
//
// Reported bug 19, Resilience4j: so do old permits given back.
func TestT19_OldPermitsGiveNoPlaceBack(t *testing.T) {
	subjects(t, probing(3, 1, time.Hour), func(t *testing.T, allow allower, reset func()) {
		old, probes := halfOpened(t, allow, 5, 1)
		for _, p := range old {
			wantVerdict(t, p.Cancel(), ab.Late)
		}
		second, third := admit(t, allow), admit(t, allow)
		reject(t, allow, ab.ErrTooManyProbes)
		wantVerdict(t, probes[0].Cancel(), ab.Counted) // one's own does
		probes[0] = admit(t, allow)
		reject(t, allow, ab.ErrTooManyProbes)
		wantVerdict(t, second.Success(), ab.Recovered)
		wantVerdict(t, third.Success(), ab.Late)
		wantVerdict(t, probes[0].Failure(), ab.Late)
		wantVerdict(t, fail(t, allow, 1), ab.Tripped) // it was closed
	})
}

// T20: a success from before the opening closes nothing, at no time while the
// breaker is open.
//
// Reported bug 20, hoglet: an old success closes.
func TestT20_OldSuccessesDoNotClose(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.Consecutive(5), OpenTimeout: time.Second}, func(t *testing.T, allow allower, reset func()) {
		var old []permit
		for range 12 {
			old = append(old, admit(t, allow))
		}
		wantVerdict(t, fail(t, allow, 5), ab.Tripped)
		for _, p := range old[:10] {
			wantVerdict(t, p.Success(), ab.Late)
			reject(t, allow, ab.ErrOpen)
			time.Sleep(100 * time.Millisecond)
		}
		probe := admit(t, allow)
		wantVerdict(t, old[10].Success(), ab.Late)
		wantVerdict(t, probe.Failure(), ab.Tripped)
		wantVerdict(t, old[11].Success(), ab.Late)
		reject(t, allow, ab.ErrOpen)
	})
}

// T22: whatever success is reported while the breaker is open, it stays so:
// of calls from before, of probes that came too late or were reported before,
// and of none.
//
// Reported bug 22, hystrix-go: any success closes it (here only RecordSuccess).
func TestT22_SuccessesWhileOpenDoNotClose(t *testing.T) {
	subjects(t, probing(2, 2, time.Hour), func(t *testing.T, allow allower, reset func()) {
		old, probes := halfOpened(t, allow, 1, 2)
		tripped := probes[0]
		wantVerdict(t, tripped.Failure(), ab.Tripped)
		for _, p := range []permit{old[0], tripped, probes[1], ab.Permit{}, ab.GroupPermit[int]{}} {
			for range 3 {
				wantVerdict(t, p.Success(), ab.Late)
				wantVerdict(t, p.Done(nil), ab.Late)
				reject(t, allow, ab.ErrOpen)
			}
		}
	})
}

// T23: to look at an open breaker whose time has passed, or to report an old
// success, takes no probe's place and begins nothing. RecordSuccess closes at
// once, and not by way of a probe.
//
// Reported bug 23, rubyist/circuitbreaker: reports use probe slots.
func TestT23_ReportsTakeNoPlace(t *testing.T) {
	byHand(t, probing(1, 1, time.Hour), func(t *testing.T, s subject) {
		old, _ := halfOpened(t, s.allow, 4, 0)
		*s.events = nil
		for i := range 4 {
			wantVerdict(t, old[i].Success(), ab.Late)
			wantState(t, s.state(), ab.HalfOpen)
			if got := s.snapshot(); got.InFlight != 0 || got.Generation != 1 {
				t.Fatalf("%+v", got)
			}
		}
		s.events.want(t)
		wantVerdict(t, s.succeed(), ab.Recovered)
		s.events.want(t, ab.Event{From: ab.Open, Reason: ab.ReasonRecordSuccess, Streak: 1})
		open(t, s.allow)
		p := admit(t, s.allow)
		reject(t, s.allow, ab.ErrTooManyProbes)
		wantVerdict(t, p.Success(), ab.Recovered)
	})
}

// T25: of an old result and that of the probe, reported in either order, the
// probe's counts, and its trial is over once.
//
// Reported bug 25, Bazel: old result and probe both end the trial.
func TestT25_OneResultForEachTrial(t *testing.T) {
	for i := range 5 {
		for _, oldFirst := range []bool{false, true} {
			byHand(t, probing(1, 2, time.Hour), func(t *testing.T, s subject) {
				old, probes := halfOpened(t, s.allow, 1, 1)
				if oldFirst {
					wantVerdict(t, everyReport(i)(old[0]), ab.Late)
					reject(t, s.allow, ab.ErrTooManyProbes)
				}
				wantVerdict(t, probes[0].Success(), ab.Counted)
				if !oldFirst {
					wantVerdict(t, everyReport(i)(old[0]), ab.Late)
				}
				if got := s.snapshot(); got.State != ab.HalfOpen || got.InFlight != 0 || got.Successes != 1 {
					t.Fatalf("%+v", got)
				}
				wantVerdict(t, admit(t, s.allow).Success(), ab.Recovered)
			})
		}
	}
}

// T58: of several failures that would each open the breaker one does. When it
// has recovered, nothing is left that would make it half-open.
//
// Reported bug 58, Resty: two failures open it twice.
func TestT58_OneOpeningForManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, OnStateChange: l.add})
		var old []permit
		for range 10 {
			old = append(old, admit(t, b.Allow))
		}
		wantVerdict(t, old[0].Failure(), ab.Tripped)
		for _, p := range old[1:] {
			time.Sleep(50 * time.Millisecond)
			wantVerdict(t, p.Failure(), ab.Late)
		}
		time.Sleep(550 * time.Millisecond) // a second after the first failure
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)
		for range 10 {
			time.Sleep(500 * time.Millisecond)
			wantState(t, b.State(), ab.Closed)
			wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
		}
		if len(l) != 3 || b.Stats().Opened != 1 {
			t.Fatalf("told %v, %+v", l, b.Stats())
		}
	})
}
