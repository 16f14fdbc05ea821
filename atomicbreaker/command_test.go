//go:build !modelcheck

package atomicbreaker_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// A subject is a Breaker, or a key of a Group.
type subject struct {
	allow         allower
	reset         func()
	trip          func(time.Duration)
	halfOpen      func()
	forceOpen     func()
	disable       func()
	state         func() ab.State
	snapshot      func() ab.Snapshot
	succeed, fail func() ab.Verdict // without a permit
	isOpen        func() bool
	stats         func() ab.Stats
	events        *log
}

// byHand runs f with a Breaker, and with a key of a Group; both tell a log.
func byHand(t *testing.T, c ab.Config, f func(t *testing.T, s subject)) {
	t.Run("Breaker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l log
			c := c
			c.OnStateChange = l.add
			b := ab.MustNew(c)
			f(t, subject{allow: allow(b), reset: b.Reset, trip: b.Trip, halfOpen: b.HalfOpen, forceOpen: b.ForceOpen, disable: b.Disable, state: b.State,
				snapshot: b.Snapshot, succeed: b.RecordSuccess, fail: b.RecordFailure, isOpen: b.IsOpen, stats: b.Stats, events: &l})
		})
	})
	t.Run("Group", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l log
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c, ForgetAfter: 100 * time.Hour, OnStateChange: func(k string, e ab.Event) { l.add(e) }})
			f(t, subject{
				allow: keyed(g, "k"), reset: func() { g.Reset("k") }, trip: func(d time.Duration) { g.Trip("k", d) },
				halfOpen: func() { g.HalfOpen("k") }, forceOpen: func() { g.ForceOpen("k") }, disable: func() { g.Disable("k") },
				state: func() ab.State { return g.State("k") }, snapshot: func() ab.Snapshot { return g.Snapshot("k") },
				succeed: func() ab.Verdict { return g.RecordSuccess("k") }, fail: func() ab.Verdict { return g.RecordFailure("k") },
				isOpen: func() bool { return g.IsOpen("k") }, stats: g.Stats, events: &l,
			})
			if err := g.CheckQuiet(); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// opened is the event of an opening.
func opened(from ab.State, why ab.Reason, streak int, d time.Duration) ab.Event {
	return ab.Event{From: from, To: ab.Open, Reason: why, Streak: streak, OpenFor: d}
}

// left returns how long the subject rejects.
func (s subject) left(t *testing.T, want time.Duration) {
	t.Helper()
	if got := s.snapshot().RetryAfter; got != want {
		t.Fatalf("open for %v, want %v", got, want)
	}
}

var oneSecond = ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Second, MaxOpenTimeout: 10 * time.Second}

// Checks I7: all tests of this file.

// Whatever the mode, HalfOpen lets probes through, and what they report decides.
func TestHalfOpenByHand(t *testing.T) {
	for from, set := range map[ab.State]func(subject){
		ab.Closed: func(subject) {}, ab.Open: func(s subject) { s.trip(-1) },
		ab.ForcedOpen: func(s subject) { s.forceOpen() }, ab.Disabled: func(s subject) { s.disable() },
	} {
		t.Run(from.String(), func(t *testing.T) {
			byHand(t, oneSecond, func(t *testing.T, s subject) {
				before := admit(t, s.allow)
				set(s)
				*s.events = nil
				streak := map[bool]int{true: 1}[from == ab.Open]
				for range 3 { // T6: once is enough
					s.halfOpen()
				}
				s.events.want(t, ab.Event{From: from, To: ab.HalfOpen, Reason: ab.ReasonHalfOpen, Streak: streak})
				time.Sleep(10 * time.Hour) // nothing is forgotten that was just set
				wantState(t, s.state(), ab.HalfOpen)
				wantVerdict(t, before.Success(), ab.Late)
				probe := admit(t, s.allow)
				reject(t, s.allow, ab.ErrTooManyProbes)
				s.halfOpen()
				reject(t, s.allow, ab.ErrTooManyProbes)
				wantVerdict(t, probe.Failure(), ab.Tripped)
				s.left(t, time.Second<<streak)
				s.halfOpen()
				late := admit(t, s.allow)
				time.Sleep(time.Minute)
				heir := admit(t, s.allow)
				wantVerdict(t, probe.Failure(), ab.Late)
				wantVerdict(t, late.Success(), ab.Recovered) // overdue, and of this period
				wantVerdict(t, heir.Failure(), ab.Late)
			})
		})
	}
}

// T63: what is forced open lets nothing through, not even a probe, for ever,
// and no result closes it.
//
// Reported bug 63, cep21/circuit: forced open still probes.
func TestT63_ForceOpen(t *testing.T) {
	byHand(t, oneSecond, func(t *testing.T, s subject) {
		before := admit(t, s.allow)
		for range 3 { // T6: once is enough
			s.forceOpen()
		}
		s.events.want(t, ab.Event{To: ab.ForcedOpen, Reason: ab.ReasonForceOpen, OpenFor: math.MaxInt64})
		wantVerdict(t, before.Success(), ab.Late)
		wantVerdict(t, before.Trip(0), ab.Late)
		for range 5 {
			time.Sleep(1000 * 24 * time.Hour)
			reject(t, s.allow, ab.ErrOpen)
			wantState(t, s.state(), ab.ForcedOpen)
			s.left(t, math.MaxInt64)
			wantVerdict(t, s.succeed(), ab.Late)
			wantVerdict(t, s.fail(), ab.Late)
		}
		s.reset()
		s.events.want(t, ab.Event{From: ab.ForcedOpen, Reason: ab.ReasonReset})
		wantState(t, s.state(), ab.Closed)
		wantVerdict(t, fail(t, s.allow, 1), ab.Counted)
		s.forceOpen()
		s.events.want(t, ab.Event{To: ab.ForcedOpen, Reason: ab.ReasonForceOpen, Failures: 1, OpenFor: math.MaxInt64})
		s.trip(time.Second)
		s.events.want(t, opened(ab.ForcedOpen, ab.ReasonTrip, 1, time.Second))
		time.Sleep(time.Second)
		probe := admit(t, s.allow)
		s.forceOpen()
		wantVerdict(t, probe.Success(), ab.Late)
		reject(t, s.allow, ab.ErrOpen)
		s.disable()
		admit(t, s.allow)
		s.forceOpen()
		reject(t, s.allow, ab.ErrOpen)
	})
}

// What is recorded without a permit counts while closed, closes what is open and opens
// what may be tried.
func TestRecord(t *testing.T) {
	byHand(t, ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Second}, func(t *testing.T, s subject) {
		is := func(want ab.State) {
			t.Helper()
			wantState(t, s.state(), want)
			if got := s.isOpen(); got != (want == ab.Open || want == ab.ForcedOpen) {
				t.Fatalf("IsOpen %v while %v", got, want)
			}
		}
		wantVerdict(t, s.succeed(), ab.Counted)
		wantVerdict(t, s.fail(), ab.Counted)
		is(ab.Closed)
		wantVerdict(t, s.succeed(), ab.Counted)
		wantVerdict(t, s.fail(), ab.Counted)
		wantVerdict(t, s.fail(), ab.Tripped)
		is(ab.Open)
		wantVerdict(t, s.fail(), ab.Late) // open: nobody should have called
		time.Sleep(time.Second)
		is(ab.HalfOpen)
		wantVerdict(t, s.fail(), ab.Tripped) // its time had passed
		time.Sleep(time.Second)
		p := admit(t, s.allow)
		is(ab.HalfOpen)
		wantVerdict(t, s.fail(), ab.Tripped) // half-open
		wantVerdict(t, p.Success(), ab.Late)
		is(ab.Open)
		wantVerdict(t, s.succeed(), ab.Recovered) // open
		is(ab.Closed)
		fail(t, s.allow, 2)
		time.Sleep(time.Second)
		admit(t, s.allow)
		wantVerdict(t, s.succeed(), ab.Recovered) // half-open
		is(ab.Closed)
		s.forceOpen()
		is(ab.ForcedOpen)
		s.disable()
		is(ab.Disabled)
	})
}

// What is recorded also counts in windows and among the last calls, and a shadow is
// never open.
func TestRecordByPolicy(t *testing.T) {
	for name, c := range map[string]ab.Config{
		"window":  {Policy: ab.FailureRate(0.5, 3, time.Minute)},
		"history": {Policy: ab.KOfN(2, 4)},
		"long":    {Policy: ab.KOfN(2, 100)},
		"shadow":  {Policy: ab.KOfN(2, 4), Shadow: true},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, c, func(t *testing.T, s subject) {
				wantVerdict(t, s.fail(), ab.Counted)
				wantVerdict(t, s.succeed(), ab.Counted)
				wantVerdict(t, s.fail(), ab.Tripped)
				if s.isOpen() == c.Shadow {
					t.Fatalf("IsOpen %v", !c.Shadow)
				}
			})
		})
	}
}

// What is disabled lets all through, counts nothing and says so.
func TestDisable(t *testing.T) {
	byHand(t, oneSecond, func(t *testing.T, s subject) {
		wantVerdict(t, fail(t, s.allow, 1), ab.Counted)
		before := admit(t, s.allow)
		for range 3 { // T6
			s.disable()
		}
		s.events.want(t, ab.Event{To: ab.Disabled, Reason: ab.ReasonDisable, Failures: 1})
		wantState(t, s.state(), ab.Disabled)
		wantVerdict(t, before.Failure(), ab.Late)
		wantVerdict(t, fail(t, s.allow, 100), ab.Counted)
		wantVerdict(t, admit(t, s.allow).Success(), ab.Counted)
		wantVerdict(t, admit(t, s.allow).Cancel(), ab.Counted)
		wantVerdict(t, admit(t, s.allow).Done(errBoom), ab.Counted)
		wantVerdict(t, admit(t, s.allow).Trip(-1), ab.Counted)
		wantVerdict(t, s.succeed(), ab.Counted)
		wantVerdict(t, s.fail(), ab.Counted)
		if got := s.snapshot(); got.Failures != 0 || got.RetryAfter != 0 {
			t.Fatalf("%+v", got)
		}
		during := admit(t, s.allow)
		s.events.want(t)
		s.reset()
		s.events.want(t, ab.Event{From: ab.Disabled, Reason: ab.ReasonReset})
		wantVerdict(t, during.Failure(), ab.Late)
		wantVerdict(t, fail(t, s.allow, 1), ab.Counted) // the first
		wantVerdict(t, fail(t, s.allow, 1), ab.Tripped)
		s.disable()
		admit(t, s.allow)
		s.trip(0)
		reject(t, s.allow, ab.ErrOpen)
	})
}

// Trip opens for as long as it says, and no longer than MaxOpenTimeout.
func TestTrip(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		-1: math.MaxInt64, math.MinInt64: math.MaxInt64,
		0: time.Second, time.Millisecond: time.Millisecond, 3 * time.Millisecond: 3 * time.Millisecond,
		5 * time.Second: 5 * time.Second, 10 * time.Second: 10 * time.Second,
		11 * time.Second: 10 * time.Second, math.MaxInt64: 10 * time.Second,
	} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			byHand(t, oneSecond, func(t *testing.T, s subject) {
				before := admit(t, s.allow)
				s.trip(d)
				wantVerdict(t, before.Success(), ab.Late)
				wantState(t, s.state(), ab.Open)
				reject(t, s.allow, ab.ErrOpen)
				s.left(t, want)
				if want == math.MaxInt64 {
					s.events.want(t, opened(ab.Closed, ab.ReasonTrip, 1, want))
					time.Sleep(1000 * 24 * time.Hour)
					reject(t, s.allow, ab.ErrOpen)
					s.reset()
					admit(t, s.allow).Success()
					return
				}
				time.Sleep(want - 1)
				reject(t, s.allow, ab.ErrOpen)
				time.Sleep(time.Nanosecond)
				wantVerdict(t, admit(t, s.allow).Success(), ab.Recovered)
				wantVerdict(t, fail(t, s.allow, 1), ab.Counted)
			})
		})
	}
	// Without MaxOpenTimeout there is a bound nevertheless.
	for timeout, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Second: 10 * time.Second, -1: 365 * 24 * time.Hour} {
		byHand(t, ab.Config{OpenTimeout: timeout}, func(t *testing.T, s subject) {
			s.trip(300 * 24 * time.Hour)
			s.left(t, min(want, 300*24*time.Hour))
			s.reset()
			s.trip(500 * 24 * time.Hour)
			s.left(t, want)
		})
	}
}

// A breaker that failures open until Reset keeps to MaxOpenTimeout where somebody says
// for how long, and to Backoff.
func TestMaxOpenTimeoutUntilReset(t *testing.T) {
	c := ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1, MaxOpenTimeout: time.Minute}
	byHand(t, c, func(t *testing.T, s subject) {
		for d, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: time.Minute, math.MaxInt64: time.Minute, 0: math.MaxInt64, -1: math.MaxInt64} {
			s.trip(d)
			s.left(t, want)
			s.reset()
			wantVerdict(t, admit(t, s.allow).Trip(d), ab.Tripped)
			s.left(t, want)
			s.reset()
		}
		wantVerdict(t, fail(t, s.allow, 1), ab.Tripped)
		s.left(t, math.MaxInt64)
	})
	c.Backoff = func(streak int) time.Duration { return time.Duration(streak-1) * 40 * time.Second }
	byHand(t, c, func(t *testing.T, s subject) {
		for _, want := range []time.Duration{math.MaxInt64, 40 * time.Second, time.Minute, time.Minute} {
			s.trip(0)
			s.left(t, want)
			s.halfOpen()
		}
	})
}

// A second Trip prolongs an open time and never shortens it. If it does not
// prolong it, nothing has happened.
func TestTripWhileOpen(t *testing.T) {
	byHand(t, oneSecond, func(t *testing.T, s subject) {
		s.trip(5 * time.Second)
		s.events.want(t, opened(ab.Closed, ab.ReasonTrip, 1, 5*time.Second))
		generation := s.snapshot().Generation
		time.Sleep(time.Second)
		for _, d := range []time.Duration{1, 0, 4 * time.Second} { // T6: not longer
			s.trip(d)
			s.left(t, 4*time.Second)
			s.events.want(t)
		}
		if got := s.snapshot(); got.Generation != generation || got.Streak != 1 {
			t.Fatalf("%+v after nothing", got)
		}
		s.trip(4*time.Second + time.Millisecond)
		s.left(t, 4*time.Second+time.Millisecond)
		s.events.want(t, opened(ab.Open, ab.ReasonTrip, 2, 4*time.Second+time.Millisecond))
		s.trip(-1)
		s.events.want(t, opened(ab.Open, ab.ReasonTrip, 3, math.MaxInt64))
		for _, d := range []time.Duration{0, -1, time.Hour} {
			s.trip(d)
		}
		s.events.want(t)
		s.left(t, math.MaxInt64)
		s.reset()
		s.events.want(t, ab.Event{From: ab.Open, Reason: ab.ReasonReset, Streak: 3})
		wantVerdict(t, fail(t, s.allow, 2), ab.Tripped)
		s.left(t, time.Second) // the streak is over
	})
}

// Trip(0) is as long as a failure's turn would be, and adds to the streak.
func TestTripIsInOrder(t *testing.T) {
	byHand(t, oneSecond, func(t *testing.T, s subject) {
		for _, d := range []time.Duration{1, 2, 4, 8, 10, 10} {
			s.trip(0)
			s.left(t, d*time.Second)
			time.Sleep(d * time.Second)
			wantState(t, s.state(), ab.HalfOpen)
		}
		probe := admit(t, s.allow)
		*s.events = nil
		s.trip(0) // half-open
		s.events.want(t, ab.Event{From: ab.HalfOpen, To: ab.Open, Reason: ab.ReasonTrip, InFlight: 1, Streak: 7, OpenFor: 10 * time.Second})
		wantVerdict(t, probe.Success(), ab.Late)
	})
}

// A call that knows for how long opens the breaker at once, from any state in
// which it could have been made; of many such calls one does.
func TestPermitTrip(t *testing.T) {
	byHand(t, oneSecond, func(t *testing.T, s subject) {
		var calls []permit
		for range 5 {
			calls = append(calls, admit(t, s.allow))
		}
		wantVerdict(t, fail(t, s.allow, 1), ab.Counted)
		wantVerdict(t, calls[0].Trip(3*time.Second), ab.Tripped)
		e := opened(ab.Closed, ab.ReasonTrip, 1, 3*time.Second)
		e.Failures = 1
		s.events.want(t, e)
		for _, p := range calls[1:] {
			wantVerdict(t, p.Trip(time.Hour), ab.Late)
		}
		wantVerdict(t, calls[0].Trip(time.Hour), ab.Late) // reported twice
		s.left(t, 3*time.Second)
		time.Sleep(3 * time.Second)
		p := admit(t, s.allow)
		wantVerdict(t, calls[1].Trip(0), ab.Late) // admitted before
		wantVerdict(t, p.Trip(time.Hour), ab.Tripped)
		s.left(t, 10*time.Second)
		time.Sleep(10 * time.Second)
		wantVerdict(t, admit(t, s.allow).Trip(0), ab.Tripped)
		s.left(t, 4*time.Second) // its turn
		time.Sleep(4 * time.Second)
		p = admit(t, s.allow)
		wantVerdict(t, p.Cancel(), ab.Counted)
		wantVerdict(t, p.Trip(0), ab.Late) // a second result, while half-open
		wantVerdict(t, admit(t, s.allow).Trip(-1), ab.Tripped)
		s.left(t, math.MaxInt64)
		s.reset()
		wantVerdict(t, p.Trip(0), ab.Late)
		wantState(t, s.state(), ab.Closed)
		p = admit(t, s.allow)
		s.reset()
		wantVerdict(t, p.Trip(0), ab.Late)
	})
	wantVerdict(t, ab.Permit{}.Trip(0), ab.Late)
}

// Of concurrent Trips exactly one gets Tripped, and there is one opening.
func TestPermitTripsTogether(t *testing.T) {
	for round := range rounds(2000) {
		b := ab.MustNew(ab.Config{Policy: ab.FailureCount(1, time.Hour)})
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.FailureCount(1, time.Hour)}})
		var got [2][4]ab.Verdict
		var permits [2][4]permit
		for i := range 4 {
			permits[0][i], permits[1][i] = admit(t, b.Allow), admit(t, keyed(g, "k"))
		}
		together(4, func(i int) {
			jitter(i + round)
			for which := range got {
				if i%2 == 0 {
					got[which][i] = permits[which][i].Trip(time.Minute)
				} else {
					got[which][i] = permits[which][i].Failure()
				}
			}
		})
		for _, verdicts := range got {
			count := map[ab.Verdict]int{}
			for _, v := range verdicts {
				count[v]++
			}
			if count[ab.Tripped] != 1 || count[ab.Late] != 3 {
				t.Fatalf("verdicts %v", verdicts)
			}
		}
		if b.Stats().Opened != 1 || g.Stats().Opened != 1 || b.Stats().Late != 3 || g.Stats().Late != 3 {
			t.Fatalf("%+v, %+v", b.Stats(), g.Stats())
		}
	}
}

// Reset closes whatever there is, and always begins a generation.
func TestResetFromEachState(t *testing.T) {
	for from, set := range map[ab.State]func(t *testing.T, s subject){
		ab.Closed:     func(t *testing.T, s subject) { fail(t, s.allow, 1) },
		ab.Open:       func(t *testing.T, s subject) { fail(t, s.allow, 2) },
		ab.HalfOpen:   func(t *testing.T, s subject) { s.trip(1); time.Sleep(time.Second); admit(t, s.allow) },
		ab.ForcedOpen: func(t *testing.T, s subject) { s.forceOpen() },
		ab.Disabled:   func(t *testing.T, s subject) { s.disable() },
	} {
		t.Run(from.String(), func(t *testing.T) {
			byHand(t, oneSecond, func(t *testing.T, s subject) {
				set(t, s)
				wantState(t, s.state(), from)
				*s.events = nil
				s.reset()
				wantState(t, s.state(), ab.Closed)
				if e := *s.events; len(e) != 1 || e[0].From != from || e[0].To != ab.Closed || e[0].Reason != ab.ReasonReset {
					t.Fatalf("told %v", e)
				}
				if got := s.snapshot(); got.Failures != 0 || got.Streak != 0 || got.RetryAfter != 0 {
					t.Fatalf("%+v", got)
				}
				s.reset()
				if len(*s.events) != 2 {
					t.Fatalf("told of %d resets, want 2", len(*s.events))
				}
				wantVerdict(t, fail(t, s.allow, 1), ab.Counted)
				wantVerdict(t, fail(t, s.allow, 1), ab.Tripped)
			})
		})
	}
}

// ResetAll ends what was set by hand too, and a zero Breaker obeys like any.
func TestByHandElsewhere(t *testing.T) {
	var g ab.Group[string]
	g.ForceOpen("a")
	g.Disable("b")
	g.Trip("c", -1)
	if g.Len() != 3 || !g.IsOpen("a") || g.IsOpen("b") || !g.IsOpen("c") || g.IsOpen("d") {
		t.Fatalf("%d keys", g.Len())
	}
	g.ResetAll()
	if g.Len() != 0 || g.IsOpen("a") || g.State("b") != ab.Closed {
		t.Fatalf("%d keys after ResetAll", g.Len())
	}
	var f ab.Group[float64]
	f.ForceOpen(math.NaN())
	f.Trip(math.NaN(), 0)
	wantState(t, f.State(math.NaN()), ab.Closed) // nothing to command
	for want, do := range map[ab.State]func(*ab.Breaker){
		ab.ForcedOpen: (*ab.Breaker).ForceOpen, ab.Disabled: (*ab.Breaker).Disable,
		ab.Open: func(b *ab.Breaker) { b.Trip(0) }, ab.Closed: (*ab.Breaker).Reset,
	} {
		var b ab.Breaker
		do(&b)
		wantState(t, b.State(), want)
		if s, snap := b.Stats(), b.Snapshot(); s.Opened+s.Closed != map[bool]uint64{true: 1}[want != ab.Disabled] || snap.Generation != 1 {
			t.Errorf("%v: %+v, %+v", want, s, snap)
		}
	}
}

// Event.InFlight are probes that will be late, which the one that trips is not.
func TestPermitTripIsNotInFlight(t *testing.T) {
	byHand(t, oneSecond, func(t *testing.T, s subject) {
		s.trip(0)
		time.Sleep(time.Second)
		probe := admit(t, s.allow)
		*s.events = nil
		wantVerdict(t, probe.Trip(0), ab.Tripped)
		e := opened(ab.HalfOpen, ab.ReasonTrip, 2, 2*time.Second)
		e.Failures = 1
		s.events.want(t, e)
	})
}

// A command reads the payload of a word only in the modes that have it.
func TestCommandsTellModesApart(t *testing.T) {
	byHand(t, ab.Config{Policy: ab.Consecutive(200), OpenTimeout: time.Second}, func(t *testing.T, s subject) {
		fail(t, s.allow, 100) // as a deadline, 100 ms
		s.trip(50 * time.Millisecond)
		wantState(t, s.state(), ab.Open)
	})
	byHand(t, ab.Config{OpenTimeout: time.Second}, func(t *testing.T, s subject) {
		for range 17 { // streaks of 8 and 16 have the bits that mean watched and logged in a closed word
			s.trip(0)
			s.halfOpen()
			wantState(t, s.state(), ab.HalfOpen)
		}
	})
}

// A breaker whose open time has passed is opened again, if only for a moment.
func TestTripWhenTimeHasPassed(t *testing.T) {
	byHand(t, ab.Config{}, func(t *testing.T, s subject) {
		s.trip(time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		s.trip(1)
		if got := s.stats().Opened; got != 2 {
			t.Fatalf("opened %d times, want 2", got)
		}
	})
}

// HalfOpen does not prolong the time of probes.
func TestHalfOpenKeepsTheLease(t *testing.T) {
	byHand(t, ab.Config{ProbeTimeout: time.Second}, func(t *testing.T, s subject) {
		s.halfOpen()
		admit(t, s.allow)
		time.Sleep(time.Second - time.Millisecond)
		s.halfOpen()
		time.Sleep(time.Millisecond)
		admit(t, s.allow)
	})
}

// Both ends of an open time may be between two ticks.
func TestOpenTimeBetweenTicks(t *testing.T) {
	const d = 1500 * time.Microsecond
	byHand(t, ab.Config{OpenTimeout: d, MaxOpenTimeout: d}, func(t *testing.T, s subject) {
		time.Sleep(500 * time.Microsecond)
		s.trip(0)
		reject(t, s.allow, ab.ErrOpen)
	})
}

func TestShortestBackoff(t *testing.T) {
	byHand(t, ab.Config{OpenTimeout: time.Second, Backoff: func(int) time.Duration { return 1 }}, func(t *testing.T, s subject) {
		s.trip(0)
		time.Sleep(time.Millisecond)
		admit(t, s.allow)
	})
}

func TestLongestForgetAfter(t *testing.T) {
	ab.MustNewGroup(ab.GroupConfig[string]{ForgetAfter: longestOpen})
}
