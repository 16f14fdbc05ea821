//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Each kind of change and of result adds to its count, and nothing else does.
func TestStats(t *testing.T) {
	byHand(t, oneSecond, func(t *testing.T, s subject) {
		want := ab.Stats{}
		counts := func(d ab.Stats) {
			t.Helper()
			want.Opened += d.Opened
			want.Closed += d.Closed
			want.Rejected += d.Rejected
			want.Late += d.Late
			if got := s.stats(); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
		admit(t, s.allow).Success()
		late := admit(t, s.allow)
		fail(t, s.allow, 1)
		admit(t, s.allow).Cancel()
		counts(ab.Stats{})
		fail(t, s.allow, 1)
		counts(ab.Stats{Opened: 1})
		reject(t, s.allow, ab.ErrOpen)
		reject(t, s.allow, ab.ErrOpen)
		counts(ab.Stats{Rejected: 2})
		late.Success()
		late.Failure()
		late.Cancel()
		late.Done(errBoom)
		late.Trip(0)
		counts(ab.Stats{Late: 5})
		time.Sleep(time.Second)
		s.state()
		s.snapshot()
		counts(ab.Stats{})
		probe := admit(t, s.allow)
		reject(t, s.allow, ab.ErrTooManyProbes)
		counts(ab.Stats{Rejected: 1})
		probe.Failure()
		probe.Failure()
		counts(ab.Stats{Opened: 1, Late: 1})
		s.trip(0)
		s.trip(time.Millisecond)
		counts(ab.Stats{Opened: 1}) // the second was nothing
		time.Sleep(10 * time.Second)
		admit(t, s.allow).Success()
		counts(ab.Stats{Closed: 1})
		s.reset()
		counts(ab.Stats{Closed: 1})
		s.forceOpen()
		s.forceOpen()
		reject(t, s.allow, ab.ErrOpen)
		counts(ab.Stats{Opened: 1, Rejected: 1})
		s.disable()
		admit(t, s.allow).Failure()
		counts(ab.Stats{})
		s.reset()
		counts(ab.Stats{Closed: 1})
	})
}

// A result without a permit is counted as late exactly if its verdict is Late.
func TestStatsOfResultsWithoutPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[float64]{Default: oneSecond})
		late := uint64(0)
		report := func(f func(float64) ab.Verdict, k float64, want ab.Verdict) {
			t.Helper()
			wantVerdict(t, f(k), want)
			if want == ab.Late {
				late++
			}
			if got := g.Stats().Late; got != late {
				t.Fatalf("%d late, want %d", got, late)
			}
		}
		report(g.RecordSuccess, 1, ab.Counted)
		report(g.RecordFailure, 1, ab.Counted)
		report(g.RecordFailure, 1, ab.Tripped)
		report(g.RecordFailure, 1, ab.Late) // open
		report(g.RecordFailure, 1, ab.Late)
		time.Sleep(time.Second)
		report(g.RecordFailure, 1, ab.Tripped) // its time had passed
		report(g.RecordSuccess, 1, ab.Recovered)
		g.ForceOpen(1)
		report(g.RecordFailure, 1, ab.Late)
		report(g.RecordSuccess, 1, ab.Late)
		g.Disable(1)
		report(g.RecordFailure, 1, ab.Counted)
		report(g.RecordFailure, math.NaN(), ab.Late)
		report(g.RecordSuccess, math.NaN(), ab.Counted)
	})
}

// With RecordTotals each call that is reported counts once, by its outcome, whatever
// becomes of it.
func TestTotals(t *testing.T) {
	for name, p := range map[string]ab.Policy{
		"a row": ab.Consecutive(2), "a history": ab.KOfN(2, 100), "a window": ab.FailureRate(1, 2, time.Hour), "slow": ab.SlowRate(1, time.Hour, 2, time.Hour),
	} {
		for _, on := range []bool{true, false} {
			byHand(t, ab.Config{Policy: p, RecordTotals: on, OpenTimeout: time.Second}, func(t *testing.T, s subject) {
				var want ab.Stats
				counts := func(what string, successes, failures, ignored uint64) {
					t.Helper()
					if on {
						want.TotalSuccesses, want.TotalFailures, want.TotalIgnored, want.Recorded = want.TotalSuccesses+successes, want.TotalFailures+failures, want.TotalIgnored+ignored, true
					}
					got := s.stats()
					if got.Opened, got.Closed, got.Rejected, got.Late = 0, 0, 0, 0; got != want {
						t.Fatalf("%s after %s: %+v, want %+v", name, what, got, want)
					}
				}
				counts("nothing", 0, 0, 0)
				admit(t, s.allow).Success()
				admit(t, s.allow).Done(nil)
				counts("successes", 2, 0, 0)
				old := admit(t, s.allow)
				admit(t, s.allow).Failure()
				admit(t, s.allow).Success()
				admit(t, s.allow).Cancel()
				admit(t, s.allow).Report(ab.Ignored)
				counts("each", 1, 1, 2)
				s.succeed()
				s.fail()
				s.reset()
				s.succeed()
				counts("by hand", 2, 1, 0)
				admit(t, s.allow).Trip(0)
				old.Success()
				s.fail()
				counts("late ones", 1, 2, 0)
				reject(t, s.allow, ab.ErrOpen)
				time.Sleep(time.Second)
				admit(t, s.allow).Cancel()
				admit(t, s.allow).Success()
				admit(t, s.allow).Success()
				counts("probes", 2, 0, 1)
				s.disable()
				admit(t, s.allow).Success()
				admit(t, s.allow).Failure()
				counts("disabled", 1, 1, 0)
				s.reset()
				admit(t, s.allow).Success()
				counts("reset", 1, 0, 0)
			})
		}
	}
}

// Totals are of all keys, whatever their type, and lose no call whose function, or a
// function of the settings, does not return.
func TestTotalsOfGroups(t *testing.T) {
	type pair struct{ a, b string }
	asks := ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { panic(errBoom) })
	g := ab.MustNewGroup(ab.GroupConfig[pair]{
		Default: ab.Config{RecordTotals: true},
		PerKey: func(k pair) ab.Config {
			c := ab.Config{Classify: func(context.Context, error) ab.Outcome { panic(errBoom) }}
			if k.a == "asks" {
				c = ab.Config{Policy: asks}
			}
			return c
		},
	})
	do := func(k pair, err error) {
		defer func() { recover() }()
		g.Do(t.Context(), k, func(context.Context) error {
			if k.a == "panic" {
				panic(errBoom)
			}
			return err
		})
	}
	for range 2 {
		do(pair{"fine", ""}, nil)
		do(pair{"panic", ""}, nil)
		do(pair{"classify", ""}, errBoom)
		do(pair{"asks", ""}, errBoom)
	}
	g.ResetAll()
	do(pair{"fine", ""}, nil)
	if s := g.Stats(); s.TotalSuccesses != 3 || s.TotalFailures != 6 || s.TotalIgnored != 0 {
		t.Fatalf("%+v", s)
	}
}

// What is recorded is in the totals though the listener panics.
func TestTotalsThoughTheListenerPanics(t *testing.T) {
	c := ab.Config{RecordTotals: true, Policy: ab.Consecutive(1)}
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c, OnStateChange: func(string, ab.Event) { panic("listener") }})
	c.OnStateChange = func(ab.Event) { panic("listener") }
	b := ab.MustNew(c)
	panics(t, "listener", func() { b.RecordFailure() })
	panics(t, "listener", func() { b.RecordSuccess() })
	panics(t, "listener", func() { g.RecordFailure("k") })
	panics(t, "listener", func() { g.RecordSuccess("k") })
	for _, s := range []ab.Stats{b.Stats(), g.Stats()} {
		if s.TotalSuccesses != 1 || s.TotalFailures != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// Update cannot change whether totals are counted.
func TestTotalsAreForEver(t *testing.T) {
	for _, on := range []bool{true, false} {
		b, g := ab.MustNew(ab.Config{RecordTotals: on}), ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{RecordTotals: on}})
		for _, to := range []bool{true, false} {
			c := ab.Config{RecordTotals: to}
			for _, err := range []error{b.Update(c), g.Update(ab.GroupConfig[int]{Default: c})} {
				if to == on && err != nil {
					t.Errorf("%v to %v: %v", on, to, err)
				}
				if want := fmt.Sprintf("atomicbreaker: Config.RecordTotals %v: must be %v in Update", to, on); to != on && (err == nil || !strings.HasPrefix(err.Error(), want)) {
					t.Errorf("%v to %v: %v", on, to, err)
				}
			}
		}
		admit(t, b.Allow).Success()
		admit(t, keyed(g, 1)).Success()
		if s, u := b.Stats(), g.Stats(); s != u || s.Recorded != on || (s.TotalSuccesses == 1) != on {
			t.Errorf("%v: %+v, %+v", on, s, u)
		}
	}
}

// A Group's counts are of all keys, survive ResetAll, and the zero values have
// none.
func TestStatsOfGroups(t *testing.T) {
	var b ab.Breaker
	var g ab.Group[int]
	if b.Stats() != (ab.Stats{}) || g.Stats() != (ab.Stats{}) {
		t.Fatal("counts of nothing")
	}
	for k := range 10 {
		fail(t, keyed(&g, k), 5)
		reject(t, keyed(&g, k), ab.ErrOpen)
	}
	p := admit(t, keyed(&g, -1))
	g.ResetAll()
	p.Success()
	g.ForceOpen(1)
	if got, want := g.Stats(), (ab.Stats{Opened: 11, Closed: 10, Rejected: 10, Late: 1}); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	h := ab.MustNewGroup(ab.GroupConfig[int]{PerKey: func(k int) ab.Config { return ab.Config{Policy: ab.Consecutive(k)} }})
	for k := 1; k < 5; k++ {
		fail(t, keyed(h, k), k)
	}
	if got := h.Stats().Opened; got != 4 {
		t.Fatalf("%d opened, want 4", got)
	}
	// Counts are exact once everybody has returned.
	c := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1})
	late := admit(t, c.Allow)
	fail(t, c.Allow, 1)
	n := rounds(20_000)
	together(4, func(int) {
		for range n {
			c.Allow()
			late.Success()
		}
	})
	if got, want := c.Stats(), (ab.Stats{Opened: 1, Rejected: uint64(4 * n), Late: uint64(4 * n)}); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
}

// With DetailedErrors a rejection says of what, why, and until when.
func TestDetailedErrors(t *testing.T) {
	c := oneSecond
	c.Name, c.DetailedErrors, c.ProbeTimeout = "db", true, 1280*time.Millisecond
	byHand(t, c, func(t *testing.T, s subject) {
		wants := func(sentinel, other error, state ab.State, after time.Duration, text string) {
			t.Helper()
			_, err := s.allow()
			var e *ab.OpenError
			if !errors.Is(err, sentinel) || !errors.Is(err, ab.ErrRejected) || errors.Is(err, other) || !errors.As(err, &e) {
				t.Fatalf("Allow: %v, want %v", err, sentinel)
			}
			if e.Name != "db" || e.State != state || e.RetryAfter != after {
				t.Fatalf("%+v, want %v, %v", e, state, after)
			}
			if err.Error() != text {
				t.Fatalf("%q, want %q", err, text)
			}
		}
		const open, half = "atomicbreaker: call rejected: breaker is open (db)", "atomicbreaker: call rejected: breaker is half-open and all probes are in flight (db)"
		fail(t, s.allow, 2)
		time.Sleep(250 * time.Millisecond)
		wants(ab.ErrOpen, ab.ErrTooManyProbes, ab.Open, 750*time.Millisecond, open+", retry after 750ms")
		time.Sleep(750*time.Millisecond + 10*time.Second - 24*time.Millisecond)
		admit(t, s.allow)
		wants(ab.ErrTooManyProbes, ab.ErrOpen, ab.HalfOpen, 1280*time.Millisecond, half+", retry after 1.28s")
		time.Sleep(1279 * time.Millisecond)
		wants(ab.ErrTooManyProbes, ab.ErrOpen, ab.HalfOpen, time.Millisecond, half+", retry after 1ms")
		time.Sleep(time.Millisecond)
		admit(t, s.allow)
		s.forceOpen()
		wants(ab.ErrOpen, ab.ErrTooManyProbes, ab.ForcedOpen, math.MaxInt64, open+", until reset")
		s.trip(-1)
		wants(ab.ErrOpen, ab.ErrTooManyProbes, ab.Open, math.MaxInt64, open+", until reset")
	})
}

// T32: whoever waits as long as the error says finds that the time has passed.
//
// Reported bug 32, Failsafe-go, SmallRye: State stays open until a call.
func TestT32_RetryAfterIsEnough(t *testing.T) {
	c := oneSecond
	c.DetailedErrors = true
	subjects(t, c, func(t *testing.T, allow allower, reset func()) {
		for i := range 50 {
			fail(t, allow, 2)
			time.Sleep(time.Duration(i) * 19_777 * time.Microsecond)
			_, err := allow()
			if e, ok := err.(*ab.OpenError); !ok {
				t.Fatalf("Allow: %v after %v", err, time.Duration(i)*19_777*time.Microsecond)
			} else {
				time.Sleep(e.RetryAfter - 1)
				reject(t, allow, ab.ErrOpen)
				time.Sleep(time.Nanosecond)
			}
			admit(t, allow).Success()
		}
	})
}

func TestZeroOpenError(t *testing.T) {
	var e ab.OpenError
	if !errors.Is(&e, ab.ErrOpen) || !errors.Is(&e, ab.ErrRejected) || errors.Is(&e, ab.ErrTooManyProbes) {
		t.Errorf("the zero OpenError is %v", e.Unwrap())
	}
	if got, want := e.Error(), "atomicbreaker: call rejected: breaker is open, retry after 0s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	b := ab.MustNew(ab.Config{})
	b.ForceOpen()
	if _, err := b.Allow(); err != ab.ErrOpen { // not detailed, so it can be compared
		t.Error(err)
	}
}

func TestLogValues(t *testing.T) {
	for want, v := range map[string]slog.LogValuer{
		"[state=Closed]": ab.Snapshot{},
		"[name=db state=Shadow would=Open failures=1 successes=2 in_flight=3 streak=4 generation=5 retry_after=1s]": ab.Snapshot{
			Name: "db", State: ab.Shadow, Would: ab.Open, Failures: 1, Successes: 2, InFlight: 3, Streak: 4, Generation: 5, RetryAfter: time.Second},
		"[]":                                    ab.Stats{},
		"[opened=1 closed=2 rejected=3 late=4]": ab.Stats{Opened: 1, Closed: 2, Rejected: 3, Late: 4},
		"[name=db from=Closed to=Open reason=SlowRate generation=1 failures=2 calls=3 streak=4 open_for=1s shadow=true]": ab.Event{
			Name: "db", To: ab.Open, Reason: ab.ReasonSlowRate, Generation: 1, Failures: 2, Calls: 3, Streak: 4, OpenFor: time.Second, Shadow: true},
	} {
		if got := v.LogValue().String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// States and reasons are words in text formats, and each has one of its own.
func TestTextOfStatesAndReasons(t *testing.T) {
	states, reasons := map[string]bool{}, map[string]bool{}
	for s := ab.Closed; s <= ab.Shadow; s++ {
		states[fmt.Sprint(s)] = true
	}
	for r := ab.ReasonThreshold; r <= ab.ReasonDisable; r++ {
		text, err := r.MarshalText()
		if err != nil || string(text) != r.String() {
			t.Errorf("%v: %q, %v", r, text, err)
		}
		reasons[string(text)] = true
	}
	if len(states) != 6 || len(reasons) != 14 || reasons["Reason(1)"] {
		t.Errorf("%v, %v", states, reasons)
	}
	got, err := json.Marshal(ab.Event{From: ab.Closed, To: ab.ForcedOpen, Reason: ab.ReasonForceOpen})
	const want = `{"Name":"","From":"Closed","To":"ForcedOpen","Generation":0,"Reason":"ForceOpen","Failures":0,"Calls":0,` +
		`"Successes":0,"InFlight":0,"Streak":0,"OpenFor":0,"Shadow":false,"At":"0001-01-01T00:00:00Z"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// A Snapshot can be published as it is.
func TestSnapshotAsAVariable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Name: "db", Policy: ab.Consecutive(1), OpenTimeout: time.Second})
		fail(t, b.Allow, 1)
		v := expvar.Func(func() any { return b.Snapshot() })
		const want = `{"Name":"db","State":"Open","Would":"Open","Failures":0,"Streak":1,"Successes":0,"InFlight":0,"Generation":1,"RetryAfter":1000000000}`
		if got := v.String(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}
