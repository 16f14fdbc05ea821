//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func probing(probes, closeAfter int, timeout time.Duration) ab.Config {
	return ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second,
		Probes: probes, CloseAfter: closeAfter, ProbeTimeout: timeout}
}

// open trips the breaker and waits until it takes probes.
func open(t *testing.T, allow allower) {
	t.Helper()
	wantVerdict(t, fail(t, allow, 1), ab.Tripped)
	time.Sleep(time.Second)
}

// Checks I3: all tests of this file.

// T26: a probe that never reports keeps its slot for ProbeTimeout and no longer.
//
// Reported bug 26, gobreaker, Failsafe-go, Polly: a lost probe blocks it for ever.
// Checks I3.
func TestT26_HungProbe(t *testing.T) {
	subjects(t, probing(1, 1, 10*128*time.Millisecond), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		hung := admit(t, allow)
		time.Sleep(10*128*time.Millisecond - time.Nanosecond)
		reject(t, allow, ab.ErrTooManyProbes)
		time.Sleep(time.Nanosecond)
		p := admit(t, allow)
		reject(t, allow, ab.ErrTooManyProbes)
		wantVerdict(t, hung.Cancel(), ab.Counted)
		reject(t, allow, ab.ErrTooManyProbes) // its slot is another's
		wantVerdict(t, p.Success(), ab.Recovered)
		wantVerdict(t, hung.Success(), ab.Late)
	})
}

// Probes that have lost their slots have not lost their voices: calls that all
// succeed, and all take longer than ProbeTimeout, close the breaker.
func TestOverdueProbesClose(t *testing.T) {
	subjects(t, probing(1, 3, 10*time.Second), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		var probes []permit
		for range 5 { // four of which are overdue
			probes = append(probes, admit(t, allow))
			reject(t, allow, ab.ErrTooManyProbes)
			time.Sleep(12 * time.Second)
		}
		wantVerdict(t, probes[0].Success(), ab.Counted)
		wantVerdict(t, probes[3].Success(), ab.Counted)
		wantVerdict(t, probes[1].Success(), ab.Recovered)
		wantVerdict(t, probes[4].Success(), ab.Late)
	})
}

// The failure of such a probe opens the breaker again, and what is left of its
// period is late.
func TestOverdueProbesOpen(t *testing.T) {
	ends := map[string]func(permit) ab.Verdict{
		"Failure": permit.Failure, "Trip": func(p permit) ab.Verdict { return p.Trip(0) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			subjects(t, probing(1, 3, time.Second), func(t *testing.T, allow allower, reset func()) {
				open(t, allow)
				early := admit(t, allow)
				time.Sleep(2 * time.Second)
				late := admit(t, allow)
				time.Sleep(2 * time.Second)
				heir := admit(t, allow)
				wantVerdict(t, end(early), ab.Tripped)
				wantVerdict(t, late.Success(), ab.Late)
				wantVerdict(t, heir.Failure(), ab.Late)
				time.Sleep(time.Second)
				next := admit(t, allow)
				wantVerdict(t, late.Failure(), ab.Late) // of another period
				wantVerdict(t, next.Success(), ab.Counted)
			})
		})
	}
}

// A slot is given back by who has it, once.
func TestOverdueProbesGiveNoSlotBack(t *testing.T) {
	subjects(t, probing(2, 31, time.Second), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		lost := []permit{admit(t, allow), admit(t, allow)}
		time.Sleep(2 * time.Second)
		admit(t, allow)
		admit(t, allow)
		for _, p := range lost {
			wantVerdict(t, p.Success(), ab.Counted)
			wantVerdict(t, p.Cancel(), ab.Counted)
			reject(t, allow, ab.ErrTooManyProbes)
		}
	})
}

// With a rate, CloseAfter results decide, whichever the last one is.
func TestProbeFailureRate(t *testing.T) {
	const ok, bad = ab.Success, ab.Failure
	for _, tt := range []struct {
		rate    float64
		results []ab.Outcome
		want    ab.Verdict
	}{
		{0.5, []ab.Outcome{bad, ok, ok, ok}, ab.Recovered},
		{0.5, []ab.Outcome{ok, ok, ok, bad}, ab.Recovered},
		{0.5, []ab.Outcome{bad, bad, ok, ok}, ab.Tripped},
		{0.5, []ab.Outcome{ok, bad, ok, bad}, ab.Tripped},
		{0.26, []ab.Outcome{ok, bad, ok, ok}, ab.Recovered},
		{0.25, []ab.Outcome{ok, bad, ok, ok}, ab.Tripped},
		{1, []ab.Outcome{bad, bad, bad, ok}, ab.Recovered},
		{1, []ab.Outcome{bad, bad, bad, bad}, ab.Tripped},
		{5e-324, []ab.Outcome{ok, ok, ok, ok}, ab.Recovered},
		{5e-324, []ab.Outcome{ok, ok, ok, bad}, ab.Tripped},
	} {
		c := probing(2, 4, time.Second)
		c.ProbeFailureRate = tt.rate
		subjects(t, c, func(t *testing.T, allow allower, reset func()) {
			for range 2 { // it begins anew
				open(t, allow)
				wantVerdict(t, admit(t, allow).Cancel(), ab.Counted)
				lost := []permit{admit(t, allow), admit(t, allow)}
				time.Sleep(2 * time.Second)
				var v ab.Verdict
				for i, o := range tt.results {
					p := admit(t, allow)
					if i < len(lost) { // those that have lost their slots count too
						p.Cancel()
						p = lost[i]
					}
					wantVerdict(t, v, ab.Counted)
					if o == bad {
						v = p.Failure()
					} else {
						v = p.Success()
					}
				}
				wantVerdict(t, v, tt.want)
				reset()
			}
		})
	}
}

// What probes have proven is not lost when another one hangs.
func TestExpiryKeepsSuccesses(t *testing.T) {
	subjects(t, probing(1, 3, 128*time.Millisecond), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		admit(t, allow) // hangs
		time.Sleep(256 * time.Millisecond)
		wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
	})
}

// Two staggered probes, one of them lost: the other keeps its slot for all of
// its time, and with it the breaker closes.
func TestLeaseIsRenewedByAdmission(t *testing.T) {
	const timeout = 8 * 128 * time.Millisecond
	subjects(t, probing(2, 2, timeout), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		lost := admit(t, allow)
		time.Sleep(timeout - 128*time.Millisecond)
		second := admit(t, allow)
		time.Sleep(timeout - 128*time.Millisecond)
		reject(t, allow, ab.ErrTooManyProbes) // the first is overdue, the second is not
		wantVerdict(t, second.Success(), ab.Counted)
		third := admit(t, allow)
		reject(t, allow, ab.ErrTooManyProbes)
		wantVerdict(t, third.Success(), ab.Recovered)
		wantVerdict(t, lost.Failure(), ab.Late)
	})
}

// Probes that each take most of ProbeTimeout add up to CloseAfter, however
// long that takes all together.
func TestSlowProbesClose(t *testing.T) {
	const timeout = 10 * 128 * time.Millisecond
	subjects(t, probing(2, 9, timeout), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		var v ab.Verdict
		for range 4 {
			a, b := admit(t, allow), admit(t, allow)
			time.Sleep(timeout * 9 / 10)
			reject(t, allow, ab.ErrTooManyProbes)
			wantVerdict(t, a.Success(), ab.Counted)
			wantVerdict(t, b.Success(), ab.Counted)
		}
		v = admit(t, allow).Success()
		wantVerdict(t, v, ab.Recovered)
	})
}

// T28: an outcome that says nothing gives the slot back, and decides nothing.
//
// Reported bug 28, Resilience4j, Polly, Hystrix: so does an ignored result.
func TestT28_IgnoredProbe(t *testing.T) {
	subjects(t, probing(1, 1, time.Hour), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		for range 100 {
			p := admit(t, allow)
			reject(t, allow, ab.ErrTooManyProbes)
			wantVerdict(t, p.Done(context.Canceled), ab.Counted)
			wantVerdict(t, admit(t, allow).Cancel(), ab.Counted)
		}
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
	})
}

// T31, T29: it takes CloseAfter successes, with fewer slots than that too, and
// one failure opens again.
//
// Reported bug 31, autobreaker: one success closes, not several.
func TestT31_CloseAfter(t *testing.T) {
	subjects(t, probing(2, 5, time.Hour), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		for range 4 {
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		}
		wantVerdict(t, admit(t, allow).Failure(), ab.Tripped)
		reject(t, allow, ab.ErrOpen)
		time.Sleep(time.Second)
		for range 4 {
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		}
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
	})
}

// T25, T30: the limit is exact, and results give back just their own slot.
//
// Reported bug 30, mercari, go-zero, Sentinel: after the open time everybody probes.
// Checks I3.
func TestT30_ProbeLimit(t *testing.T) {
	subjects(t, probing(31, 31, time.Hour), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		var probes []permit
		for range 31 {
			probes = append(probes, admit(t, allow))
		}
		reject(t, allow, ab.ErrTooManyProbes)
		wantVerdict(t, probes[0].Cancel(), ab.Counted)
		probes[0] = admit(t, allow)
		reject(t, allow, ab.ErrTooManyProbes)
		for i, p := range probes {
			want := ab.Counted
			if i == 30 {
				want = ab.Recovered
			}
			wantVerdict(t, p.Success(), want)
		}
	})
}

// T32: State follows the clock without a call, and looking changes nothing.
//
// Reported bug 32, Failsafe-go, SmallRye: State stays open until a call.
func TestT32_StateIsPassive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(probing(1, 1, 0))
		fail(t, b.Allow, 1)
		gen := b.Snapshot().Generation
		wantState(t, b.State(), ab.Open)
		time.Sleep(time.Second)
		for range 5 {
			wantState(t, b.State(), ab.HalfOpen)
		}
		if got := b.Snapshot(); got.Generation != gen || got.InFlight != 0 {
			t.Fatalf("looking changed the breaker: %+v", got)
		}
	})
}

// T34, T2: each opening has a deadline of its own.
//
// Reported bug 34, hoglet: reopening keeps the first deadline.
func TestT34_ReopeningMovesTheDeadline(t *testing.T) {
	subjects(t, probing(1, 1, 0), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		for range 5 {
			time.Sleep(300 * time.Millisecond)
			wantVerdict(t, admit(t, allow).Failure(), ab.Tripped)
			time.Sleep(999 * time.Millisecond)
			reject(t, allow, ab.ErrOpen)
			time.Sleep(time.Millisecond)
		}
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
	})
}

// T49: deadlines are differences. They survive any number of turns of the
// word's clock, during which nobody calls.
//
// Reported bug 49, Failsafe-go, Resilience4j, Hystrix: wall clock set back.
// Checks I4.
func TestT49_ClockGoesRound(t *testing.T) {
	const openRange, leaseRange = (1 << 36) * time.Millisecond, (1 << 21) * 128 * time.Millisecond
	subjects(t, probing(1, 1, time.Minute), func(t *testing.T, allow allower, reset func()) {
		for i := range 12 { // 24 years in all
			wantVerdict(t, fail(t, allow, 1), ab.Tripped)
			reject(t, allow, ab.ErrOpen)
			time.Sleep(openRange * time.Duration(i%5) / 4)
			if i%5 == 4 || i%5 == 0 {
				time.Sleep(time.Second) // the range is a multiple of the clock's round
			}
			admit(t, allow) // hangs
			reject(t, allow, ab.ErrTooManyProbes)
			time.Sleep(leaseRange*time.Duration(i%5)/4 + 61*time.Second)
			p := admit(t, allow)
			reject(t, allow, ab.ErrTooManyProbes)
			wantVerdict(t, p.Success(), ab.Recovered)
		}
	})
}

// A call within a call of the same breaker is rejected if the outer one is the only
// probe, so a breaker that is nested in itself stays half-open, as its documentation says.
func TestNestedInItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(probing(1, 1, time.Minute))
		open(t, allow(b))
		for range 100 {
			_, err := ab.Execute(b, func() (int, error) {
				return ab.Execute(b, func() (int, error) { return 1, nil })
			})
			if !errors.Is(err, ab.ErrTooManyProbes) || b.State() != ab.HalfOpen {
				t.Fatalf("%v, and the breaker is %v", err, b.State())
			}
			time.Sleep(time.Hour)
		}
	})
}
