//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// slack is how much longer than its window a call may count.
func slack(window time.Duration) time.Duration { return window/15 + 16*time.Microsecond }

// A past is what a window should hold: when calls ended, and whether they were
// bad.
type past []struct {
	at  time.Time
	bad bool
}

func (l *past) add(bad bool) {
	*l = append(*l, struct {
		at  time.Time
		bad bool
	}{time.Now(), bad})
}

// always and never report whether every way, and no way, to round the beginning
// of the window fulfils full.
func (l past) always(window time.Duration, full func(bad, calls int) bool) (always, never bool) {
	always, never = true, true
	bad, calls := 0, 0
	for i := len(l) - 1; i >= 0; i-- {
		age := time.Since(l[i].at)
		if age > window { // may be in or not, and none of those before it are if it is not
			if full(bad, calls) {
				never = false
			} else {
				always = false
			}
			if age >= window+slack(window) {
				return always, never
			}
		}
		calls++
		if l[i].bad {
			bad++
		}
	}
	if full(bad, calls) {
		return always, false
	}
	return false, never
}

// Checks I14, I15, I16: all tests of this file.

// Windows decide as a list of all calls with their times does, but for the
// fifteenth by which they may be longer.
func TestWindowsDecideLikeAList(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		window := time.Duration(1 + r.Int64N(int64(time.Duration(1)<<(10+r.IntN(30)))))
		n, ratio := 1+r.IntN(20), float64(1+r.IntN(100))/100
		for _, count := range []bool{false, true} {
			p := ab.FailureRate(ratio, n, window)
			full := func(bad, calls int) bool { return calls >= n && float64(bad) >= ratio*float64(calls)-1e-9 }
			if count {
				p, full = ab.FailureCount(n, window), func(bad, calls int) bool { return bad >= n }
			}
			synctest.Test(t, func(t *testing.T) {
				b := ab.MustNew(ab.Config{Policy: p})
				var l past
				trips, rate := 0, r.Float64()
				for i := range 600 {
					if r.IntN(30) == 0 {
						rate = r.Float64()
					}
					time.Sleep(time.Duration(r.ExpFloat64() * float64(window) / float64(2*n)))
					if r.IntN(100) == 0 {
						time.Sleep(window + time.Duration(r.Int64N(int64(20*window))))
					}
					bad := r.Float64() < rate
					l.add(bad)
					v := reportOp(admit(t, b.Allow), bad)
					always, never := l.always(window, full)
					switch {
					case v == ab.Tripped && (never || !bad), v == ab.Counted && bad && always, v == ab.Late, v == ab.Recovered:
						t.Fatalf("%v, call %d: verdict %v, bad %v; must %v, must not %v", p, i, v, bad, always, never)
					case v == ab.Tripped:
						b.Reset()
						l = nil
						trips++
					}
				}
				if trips == 0 && ratio < 0.5 && n < 5 {
					t.Errorf("%v never tripped", p)
				}
			})
		}
	}
}

// T47: failures on both sides of any boundary count together, wherever in its
// ticks the window begins, and no longer than the window and its slack.
//
// Reported bug 47, gobreaker, Sentinel: fixed boundaries split failures.
func TestT47_WindowsHaveNoBoundaries(t *testing.T) {
	const window = 15 * time.Millisecond
	for _, group := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := ab.Config{Policy: ab.FailureCount(2, window)}
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c})
			b := ab.MustNew(c)
			allow, reset := allow(b), b.Reset
			if group {
				allow, reset = keyed(g, "k"), func() { g.Reset("k") }
			}
			for range 500 {
				time.Sleep(97 * time.Microsecond)
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				time.Sleep(window)
				wantVerdict(t, fail(t, allow, 1), ab.Tripped)
				reset()
				time.Sleep(31 * time.Microsecond)
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				time.Sleep(window + slack(window))
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				reset()
			}
		})
	}
}

// T47: 98 of 100 calls that straddle two windows of a fixed grid trip.
//
// Reported bug 47, gobreaker, Sentinel: fixed boundaries split failures.
func TestT47_StraddlingFailuresTrip(t *testing.T) {
	for phase := range 20 {
		synctest.Test(t, func(t *testing.T) {
			b := ab.MustNew(ab.Config{Policy: ab.FailureRate(0.98, 100, time.Second)})
			time.Sleep(time.Duration(phase) * 53 * time.Millisecond)
			for i := range 99 {
				wantVerdict(t, reportOp(admit(t, b.Allow), i > 1), ab.Counted)
				time.Sleep(10 * time.Millisecond)
			}
			wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
		})
	}
}

// A part that a float can hold but nearly is met by so many calls.
func TestRatesOfParts(t *testing.T) {
	for of := 2; of <= 60; of++ {
		for bad := 1; bad <= of; bad++ {
			b := ab.MustNew(ab.Config{Policy: ab.FailureRate(float64(bad)/float64(of), of, time.Hour)})
			for range of - bad {
				admit(t, b.Allow).Success()
			}
			if v := fail(t, b.Allow, bad); v != ab.Tripped {
				t.Errorf("%d of %d: verdict %v", bad, of, v)
			}
			if of > 31 {
				continue
			}
			c := probing(1, of, time.Minute)
			c.ProbeFailureRate = float64(bad) / float64(of)
			b = ab.MustNew(c)
			b.HalfOpen()
			for range of - bad {
				admit(t, b.Allow).Success()
			}
			if v := fail(t, b.Allow, bad); v != ab.Tripped {
				t.Errorf("%d of %d probes: verdict %v", bad, of, v)
			}
		}
	}
}

// T46: a rate that is met exactly trips, whatever the ratio, and one call less
// does not.
//
// Reported bug 46, cep21/circuit: floating point: 57 of 100 below 57 %.
func TestT46_RatesAreIntegers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for percent := 1; percent <= 100; percent++ {
			p := ab.FailureRate(float64(percent)/100, 100, time.Minute)
			for _, short := range []int{0, 1} {
				b := ab.MustNew(ab.Config{Policy: p})
				for range 100 - percent + short {
					wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
				}
				if n := percent - short; n > 1 {
					wantVerdict(t, fail(t, b.Allow, n-1), ab.Counted)
				}
				if percent-short > 0 {
					want := ab.Tripped
					if short == 1 {
						want = ab.Counted
					}
					wantVerdict(t, fail(t, b.Allow, 1), want)
				}
			}
		}
	})
}

// T29, T44: one failure of one call is no rate. Fewer calls than minCalls never
// trip, and calls that have left the window are not among them.
//
// Reported bug 44, hoglet: windows never rotate; one of one trips.
func TestT44_MinCalls(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.FailureRate(0.01, 10, time.Second)}, func(t *testing.T, allow allower, reset func()) {
		wantVerdict(t, fail(t, allow, 9), ab.Counted)
		time.Sleep(2 * time.Second)
		wantVerdict(t, fail(t, allow, 9), ab.Counted)
		for range 5 {
			wantVerdict(t, admit(t, allow).Cancel(), ab.Counted)               // is not a call
			wantVerdict(t, admit(t, allow).Done(context.Canceled), ab.Counted) // neither
			wantVerdict(t, admit(t, allow).Done(nil), ab.Counted)              // is one, but
			wantVerdict(t, reportOp(admit(t, allow), false), ab.Counted)       // does not trip
		}
		wantVerdict(t, fail(t, allow, 1), ab.Tripped)
	})
}

// No number of successes opens a breaker, and it takes a failure to look.
func TestSuccessesNeverTrip(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.FailureRate(0.5, 4, time.Hour)}, func(t *testing.T, allow allower, reset func()) {
		wantVerdict(t, fail(t, allow, 3), ab.Counted)
		wantVerdict(t, admit(t, allow).Success(), ab.Counted) // three of four
		wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		wantVerdict(t, fail(t, allow, 1), ab.Tripped)
	})
}

// T45: millions of successes hide no failures from a FailureCount.
//
// Reported bug 45, gobreaker, autobreaker: full counters: nonsense rates.
func TestT45_FailureCountAmongSuccesses(t *testing.T) {
	b := ab.MustNew(ab.Config{Policy: ab.FailureCount(3, time.Hour)})
	for i := range 3 {
		for range rounds(400_000) {
			admit(t, b.Allow).Success()
		}
		want := ab.Counted
		if i == 2 {
			want = ab.Tripped
		}
		wantVerdict(t, admit(t, b.Allow).Failure(), want)
	}
}

// Each stay begins with an empty window: what opened the breaker does not open
// it again when it has recovered, nor after a reset.
func TestWindowsBeginWhenClosed(t *testing.T) {
	for _, p := range []ab.Policy{ab.FailureCount(3, time.Hour), ab.FailureRate(0.9, 3, time.Hour), ab.AnyOf(ab.FailureCount(3, time.Hour), ab.Consecutive(9))} {
		subjects(t, ab.Config{Policy: p, OpenTimeout: time.Millisecond}, func(t *testing.T, allow allower, reset func()) {
			for range 3 {
				old := admit(t, allow)
				wantVerdict(t, fail(t, allow, 2), ab.Counted)
				wantVerdict(t, fail(t, allow, 1), ab.Tripped)
				time.Sleep(time.Millisecond)
				wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
				wantVerdict(t, old.Failure(), ab.Late) // and is not in the new window
				wantVerdict(t, fail(t, allow, 2), ab.Counted)
				reset()
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.FailureCount(3, time.Hour), OpenTimeout: -1}})
		for _, again := range []func(){func() { g.RecordSuccess("k") }, g.ResetAll} {
			wantVerdict(t, fail(t, keyed(g, "k"), 3), ab.Tripped)
			again()
			wantVerdict(t, g.RecordFailure("k"), ab.Counted)
			wantVerdict(t, g.RecordFailure("k"), ab.Counted)
			g.ResetAll()
		}
	})
}

// The event says which window opened the breaker, and what was in it.
func TestWindowEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		made := func(p ab.Policy) *ab.Breaker {
			return ab.MustNew(ab.Config{Policy: p, OpenTimeout: time.Second, OnStateChange: l.add})
		}
		opened := func(why ab.Reason, failures, calls int) {
			t.Helper()
			l.want(t, ab.Event{To: ab.Open, Reason: why, Failures: failures, Calls: calls, Streak: 1, OpenFor: time.Second})
		}
		b := made(ab.FailureRate(0.4, 5, time.Minute))
		for i := range 4 {
			reportOp(admit(t, b.Allow), i == 0)
		}
		fail(t, b.Allow, 1)
		opened(ab.ReasonFailureRate, 2, 5)
		b = made(ab.FailureCount(2, time.Minute))
		for i := range 4 {
			reportOp(admit(t, b.Allow), i == 0)
		}
		fail(t, b.Allow, 1)
		opened(ab.ReasonFailureCount, 2, 2) // successes are not counted
		b = made(ab.SlowRate(0.5, time.Second, 4, time.Minute))
		fail(t, b.Allow, 2)
		for range 2 {
			p := admit(t, b.Allow)
			time.Sleep(time.Second + tick)
			p.Success()
		}
		opened(ab.ReasonSlowRate, 2, 4)
		// The first of the windows that are full gives the reason.
		b = made(ab.AnyOf(ab.SlowRate(0.5, time.Second, 1, time.Minute), ab.FailureCount(1, time.Minute)))
		p := admit(t, b.Allow)
		time.Sleep(time.Second + tick)
		p.Failure()
		opened(ab.ReasonSlowRate, 1, 1)
	})
}

// Windows of different keys, and of a breaker with many, are apart.
func TestWindowsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[int]{PerKey: func(k int) ab.Config {
			return ab.Config{Name: fmt.Sprint(k), Policy: ab.AnyOf(ab.FailureCount(k, time.Minute), ab.FailureCount(2*k, time.Hour))}
		}})
		for k := 1; k <= 20; k++ {
			if k > 1 {
				wantVerdict(t, fail(t, keyed(g, k), k-1), ab.Counted)
			}
		}
		for k := 1; k <= 20; k++ {
			wantVerdict(t, fail(t, keyed(g, k), 1), ab.Tripped)
		}
		g.ResetAll()
		for range 2 {
			for k := 2; k <= 20; k++ {
				wantVerdict(t, fail(t, keyed(g, k), k-1), ab.Counted)
			}
			time.Sleep(2 * time.Minute)
		}
		wantVerdict(t, fail(t, keyed(g, 2), 2), ab.Tripped) // the fourth in an hour is the second in a minute
		wantVerdict(t, fail(t, keyed(g, 20), 2), ab.Tripped)
	})
}

// tick is above what durations of calls are rounded to.
const tick = 2 * time.Microsecond

// A call is slow if it takes longer than that, however it ends and is reported.
func TestSlowCalls(t *testing.T) {
	const slow = time.Second
	took := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error { time.Sleep(d); return nil }
	}
	call := context.Background()
	do := map[string]func(b *ab.Breaker, d time.Duration) error{
		"Success": func(b *ab.Breaker, d time.Duration) error {
			p, err := b.Allow()
			time.Sleep(d)
			p.Success()
			return err
		},
		"Failure": func(b *ab.Breaker, d time.Duration) error {
			p, err := b.Allow()
			time.Sleep(d)
			p.Failure()
			return err
		},
		"Do": func(b *ab.Breaker, d time.Duration) error { return b.Do(call, took(d)) },
		"Execute": func(b *ab.Breaker, d time.Duration) error {
			_, err := ab.Execute(b, func() (int, error) { return 0, took(d)(call) })
			return err
		},
		"ExecuteContext": func(b *ab.Breaker, d time.Duration) error {
			_, err := ab.ExecuteContext(call, b, func(ctx context.Context) (int, error) { return 0, took(d)(ctx) })
			return err
		},
		"panic": func(b *ab.Breaker, d time.Duration) error {
			defer func() { recover() }()
			return b.Do(call, func(context.Context) error { time.Sleep(d); panic("boom") })
		},
	}
	for name, do := range do {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ab.MustNew(ab.Config{Policy: ab.SlowRate(0.5, slow, 4, time.Hour), OpenTimeout: time.Second})
				made := func(d time.Duration, after ab.State) {
					t.Helper()
					if err := do(b, d); err != nil {
						t.Fatal(err)
					}
					wantState(t, b.State(), after)
				}
				for range 4 {
					made(slow-tick, ab.Closed)
				}
				for range 3 {
					made(slow+tick, ab.Closed)
				}
				made(slow+tick, ab.Open) // four of eight
				time.Sleep(b.Snapshot().RetryAfter)
				made(slow+tick, ab.Open) // a slow probe has failed
				time.Sleep(b.Snapshot().RetryAfter)
				if name != "Failure" && name != "panic" {
					made(slow-tick, ab.Closed)
				}
			})
		})
	}
}

// What is Ignored is not slow, and what has no permit has no duration.
func TestSlowCallsThatDoNotCount(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.SlowRate(0.5, 0, 1, time.Hour), OpenTimeout: time.Second}, func(t *testing.T, allow allower, reset func()) {
		p, q := admit(t, allow), admit(t, allow)
		time.Sleep(time.Minute)
		wantVerdict(t, p.Cancel(), ab.Counted)
		wantVerdict(t, q.Done(context.Canceled), ab.Counted)
		wantVerdict(t, admit(t, allow).Success(), ab.Counted) // takes no time at all
		p = admit(t, allow)
		time.Sleep(tick)
		wantVerdict(t, p.Success(), ab.Tripped)
		time.Sleep(time.Second + time.Millisecond)
		p = admit(t, allow)
		time.Sleep(time.Minute)
		wantVerdict(t, p.Cancel(), ab.Counted) // a slow probe, but it says nothing
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
	})
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.SlowRate(1, 0, 1, time.Hour)}})
	wantVerdict(t, g.RecordFailure("k"), ab.Counted)
	wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
}

// A slow success is what makes an absent key present; a quick one does not.
func TestSlowCallsOfAbsentKeys(t *testing.T) {
	policy := ab.SlowRate(0.5, time.Second, 2, time.Hour)
	for name, c := range map[string]ab.GroupConfig[string]{
		"Default": {Default: ab.Config{Policy: policy}},
		"PerKey":  {Default: ab.Config{Policy: policy}, PerKey: func(string) ab.Config { return ab.Config{Policy: policy} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(c)
				took := func(d time.Duration) ab.Verdict {
					p := admit(t, keyed(g, "k"))
					time.Sleep(d)
					return p.Success()
				}
				wantVerdict(t, took(time.Second-tick), ab.Counted)
				if g.Len() != 0 {
					t.Fatal("a quick success made its key present")
				}
				wantVerdict(t, took(time.Second+tick), ab.Counted)
				if g.Len() != 1 {
					t.Fatal("a slow success did not make its key present")
				}
				wantVerdict(t, took(time.Second-tick), ab.Counted)
				wantVerdict(t, took(time.Second-tick), ab.Counted)
				wantVerdict(t, took(2*time.Second), ab.Tripped)
				g.Reset("k")
				old := admit(t, keyed(g, "k"))
				time.Sleep(time.Minute)
				g.Trip("k", time.Second)
				wantVerdict(t, old.Success(), ab.Late)
				if err := g.CheckQuiet(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	// The key's own settings say what is slow; without the default's, only keys
	// that are present are timed.
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{PerKey: func(string) ab.Config {
			return ab.Config{Policy: ab.AnyOf(ab.Consecutive(9), ab.SlowRate(0.5, time.Second, 2, time.Hour))}
		}})
		took := func() ab.Verdict {
			p := admit(t, keyed(g, "k"))
			time.Sleep(time.Minute)
			return p.Success()
		}
		wantVerdict(t, took(), ab.Counted)
		if g.Len() != 0 {
			t.Fatal("the first call was timed")
		}
		g.RecordFailure("k")
		wantVerdict(t, took(), ab.Tripped) // one of two
	})
}

// Slow calls and failures count apart.
func TestSlowIsNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.Consecutive(3), ab.SlowRate(1, time.Second, 3, time.Hour))})
		for range 2 {
			p := admit(t, b.Allow)
			time.Sleep(2 * time.Second)
			wantVerdict(t, p.Success(), ab.Counted)
			wantVerdict(t, fail(t, b.Allow, 2), ab.Counted)
		}
		p := admit(t, b.Allow)
		time.Sleep(2 * time.Second)
		wantVerdict(t, p.Success(), ab.Counted) // clears the failures in a row
		wantVerdict(t, fail(t, b.Allow, 2), ab.Counted)
		wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
	})
}
