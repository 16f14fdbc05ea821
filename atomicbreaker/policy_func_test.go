//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func tripping(f func(ab.Counts) bool) ab.Config {
	return ab.Config{Policy: ab.TripFunc(time.Minute, time.Second, f), OpenTimeout: time.Second}
}

// The function is asked after each failure and each slow call, and after nothing
// else, with counts that include it.
func TestTripFunc(t *testing.T) {
	var asked []ab.Counts
	c := tripping(func(c ab.Counts) bool { asked = append(asked, c); return c.Slow+c.Failures >= 5 })
	subjects(t, c, func(t *testing.T, allow allower, reset func()) {
		asked = nil
		call := func(d time.Duration, o ab.Outcome, want ab.Verdict) {
			t.Helper()
			p := admit(t, allow)
			time.Sleep(d)
			switch o {
			case ab.Success:
				wantVerdict(t, p.Success(), want)
			case ab.Failure:
				wantVerdict(t, p.Failure(), want)
			default:
				wantVerdict(t, p.Cancel(), want)
			}
		}
		call(0, ab.Failure, ab.Counted)
		call(0, ab.Failure, ab.Counted)
		call(0, ab.Success, ab.Counted)
		call(0, ab.Ignored, ab.Counted)
		call(2*time.Second, ab.Success, ab.Counted)
		call(0, ab.Failure, ab.Counted)
		call(2*time.Second, ab.Success, ab.Tripped)
		want := []ab.Counts{{1, 1, 0, 1}, {2, 2, 0, 2}, {4, 2, 1, 0}, {5, 3, 1, 1}, {6, 3, 2, 0}}
		if fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("asked %+v, want %+v", asked, want)
		}
		time.Sleep(time.Second)
		call(2*time.Second, ab.Success, ab.Tripped) // a slow probe has failed; nobody is asked
		reset()
		time.Sleep(2 * time.Minute)
		call(0, ab.Failure, ab.Counted)
		if last := asked[len(asked)-1]; len(asked) != 6 || last != (ab.Counts{Calls: 1, Failures: 1, Consecutive: 1}) {
			t.Errorf("asked %+v in a later stay", asked)
		}
	})
}

// TestTripFuncsOfUsers's default, and a rate among enough calls, as users write them.
func TestTripFuncsOfUsers(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.TripFunc(time.Hour, 0, func(c ab.Counts) bool { return c.Consecutive > 5 })}, func(t *testing.T, allow allower, reset func()) {
		for range 3 {
			wantVerdict(t, fail(t, allow, 5), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		}
		wantVerdict(t, fail(t, allow, 5), ab.Counted)
		wantVerdict(t, fail(t, allow, 1), ab.Tripped)
	})
	b := ab.MustNew(ab.Config{Policy: ab.TripFunc(time.Hour, 0, func(c ab.Counts) bool { return c.Calls >= 10 && c.FailureRate() >= 0.6 })})
	for range 5 {
		admit(t, b.Allow).Success()
	}
	wantVerdict(t, fail(t, b.Allow, 7), ab.Counted)
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped) // 8 of 13
}

// If the function does not return, its caller learns of that, the result counts
// for the other policies all the same, and events are told.
func TestTripFuncsThatDoNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("trip") }, "exit": runtime.Goexit} {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, keyed), func(t *testing.T) {
				var notified []string
				c := ab.Config{Policy: ab.AnyOf(ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { leave(); return true }), ab.Consecutive(3))}
				hear := func(e ab.Event) { notified = append(notified, fmt.Sprint(e.To, e.Reason, e.Failures)) }
				var do func(func()) // reports a failure, in several ways
				var state func() ab.State
				if keyed {
					g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c, OnStateChange: func(_ string, e ab.Event) { hear(e) }})
					ways := []func(){
						func() { p, _ := g.Allow("k"); p.Failure() }, func() { g.RecordFailure("k") },
						func() { g.Do(t.Context(), "k", func(context.Context) error { return errBoom }) },
					}
					do = func(func()) { ways[0](); ways = ways[1:] }
					state = func() ab.State { return g.State("k") }
				} else {
					c.OnStateChange = hear
					b := ab.MustNew(c)
					do = func(func()) { p, _ := b.Allow(); p.Failure() }
					state = b.State
				}
				for i := range 3 {
					returned := false
					goexit(func() {
						defer func() { recover() }()
						do(nil)
						returned = true
					})
					if returned != (i == 2) { // the third opens the breaker, and nobody is asked
						t.Fatalf("failure %d: returned %t", i, returned)
					}
				}
				wantState(t, state(), ab.Open)
				if want := "[" + fmt.Sprint(ab.Open, ab.ReasonThreshold, 3) + "]"; fmt.Sprint(notified) != want {
					t.Errorf("told %v, want %v", notified, want)
				}
			})
		}
	}
}

// One that blocks holds up nobody but its caller, whose failure was counted; if the
// breaker was reset meanwhile, the function opens nothing.
func TestTripFuncsThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block, first := make(chan struct{}), new(atomic.Bool)
		b := ab.MustNew(tripping(func(ab.Counts) bool {
			if first.CompareAndSwap(false, true) {
				<-block
				return true
			}
			return false
		}))
		verdict := make(chan ab.Verdict, 1)
		go func() { p, _ := b.Allow(); verdict <- p.Failure() }()
		synctest.Wait()
		wantVerdict(t, fail(t, b.Allow, 9), ab.Counted)
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
		b.Reset()
		close(block)
		wantVerdict(t, <-verdict, ab.Counted)
		wantState(t, b.State(), ab.Closed)
	})
}

// The function may use the breaker.
func TestTripFuncsMayUseTheirBreaker(t *testing.T) {
	var b *ab.Breaker
	b = ab.MustNew(tripping(func(c ab.Counts) bool {
		if c.Failures == 1 {
			b.Snapshot()
			p, _ := b.Allow()
			p.Failure()
		}
		return c.Failures == 2
	}))
	p := admit(t, b.Allow)
	wantVerdict(t, p.Failure(), ab.Counted) // the inner one has opened it
	wantState(t, b.State(), ab.Open)
}

// A failure that the open quota withholds is withheld once: the function is not asked too.
func TestTripFuncsOfWithheldFailures(t *testing.T) {
	asked := 0
	policy := ab.AnyOf(ab.Consecutive(1), ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { asked++; return true }))
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: policy}, MaxOpen: 1})
	wantVerdict(t, g.RecordFailure("open"), ab.Tripped)
	wantVerdict(t, g.RecordFailure("k"), ab.Counted)
	if n := g.Stats().Withheld; n != 1 || asked != 0 {
		t.Errorf("withheld %d times, asked %d times, want 1 and 0", n, asked)
	}
}

// A function is asked about windows that hold the failure: not about empty ones that Update
// has brought between the count and the question.
func TestTripFuncsAreNotAskedAboutNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *ab.Group[string]
		c := func() ab.GroupConfig[string] {
			policy := ab.TripFunc(time.Minute, 0, func(c ab.Counts) bool { return c.Failures == 0 })
			return ab.GroupConfig[string]{
				Default: ab.Config{OpenTimeout: time.Second, Policy: policy}, OnStateChange: func(string, ab.Event) {},
			}
		}
		first := c()
		first.OnStateChange = func(_ string, e ab.Event) {
			if e.Reason == ab.ReasonForgotten { // it is delivered before the question
				updateGroup(t, g, c())
			}
		}
		g = ab.MustNewGroup(first)
		g.Trip("k", 0)
		time.Sleep(2 * time.Hour)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted)
		wantState(t, g.State("k"), ab.Closed)
	})
}

// The listener of another key may panic in a sweep. The function is asked first.
func TestTripFuncsAreAskedBeforeSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { return true })
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default:       ab.Config{OpenTimeout: time.Second, Policy: policy},
			OnStateChange: func(string, ab.Event) { panic("listener") },
		})
		for i := range 63 {
			survives(func() { g.Trip(fmt.Sprint(i), 0) })
		}
		time.Sleep(2 * time.Hour)
		survives(func() { g.RecordFailure("k") })
		wantState(t, g.State("k"), ab.Open)
	})
}

func TestWrongTripFuncs(t *testing.T) {
	yes := func(ab.Counts) bool { return true }
	for want, p := range map[string]ab.Policy{
		"trip must not be nil":      ab.TripFunc(time.Second, 0, nil),
		"window must be positive":   ab.TripFunc(0, 0, yes),
		"slow must not be negative": ab.TripFunc(time.Second, -1, yes),
	} {
		if _, err := ab.New(ab.Config{Policy: p}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Config.Policy: TripFunc(") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Update keeps the windows of a policy that is the same, and not of one that only
// looks the same.
func TestUpdateOfTripFuncs(t *testing.T) {
	c := tripping(func(c ab.Counts) bool { return c.Failures == 3 })
	b := ab.MustNew(c)
	fail(t, b.Allow, 2)
	update(t, b, c)
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
	b.Reset()
	fail(t, b.Allow, 2)
	update(t, b, tripping(func(c ab.Counts) bool { return c.Failures == 3 }))
	wantVerdict(t, fail(t, b.Allow, 2), ab.Counted)
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
}

// Failures on all processors: the breaker opens once, by the last at the latest.
func TestStressTripFunc(t *testing.T) {
	const goroutines = 4
	n := rounds(1000)
	for _, short := range []int{0, 1} {
		b := ab.MustNew(tripping(func(c ab.Counts) bool { return c.Failures >= goroutines*n+short }))
		var tripped atomic.Int32
		together(goroutines, func(i int) {
			for j := range n {
				jitter(i + j)
				p, err := b.Allow()
				if err != nil {
					t.Error("open too early")
					return
				}
				if p.Failure() == ab.Tripped {
					tripped.Add(1)
				}
			}
		})
		if want := int32(1 - short); tripped.Load() != want {
			t.Errorf("tripped %d times, want %d", tripped.Load(), want)
		}
	}
}

// A Snapshot says what windows hold: of each kind, the first.
func TestSnapshotOfWindows(t *testing.T) {
	trip := ab.AnyOf(ab.FailureRate(1, 99, time.Minute), ab.SlowRate(1, time.Second, 99, time.Minute), ab.FailureCount(99, time.Second))
	synctest.Test(t, func(t *testing.T) {
		b, g := ab.MustNew(ab.Config{Policy: trip}), ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: trip}})
		for _, allow := range []allower{allow(b), keyed(g, "k")} {
			fail(t, allow, 3)
			admit(t, allow).Success()
			p := admit(t, allow)
			time.Sleep(2 * time.Second)
			p.Success()
		}
		want := ab.Counts{Calls: 5, Failures: 3, Slow: 1}
		if s := b.Snapshot(); s.Window != want || s.Window.FailureRate() != 0.6 || s.Window.SlowRate() != 0.2 {
			t.Errorf("%+v", s)
		}
		if s := g.Snapshot("k"); s.Window != want {
			t.Errorf("%+v", s)
		}
		for _, s := range g.All() {
			if s.Window != want {
				t.Errorf("%+v", s)
			}
		}
		if s := slog.AnyValue(b.Snapshot()).Resolve().String(); !strings.Contains(s, "window_calls=5 window_failures=3 window_slow=1") {
			t.Errorf("logged as %s", s)
		}
		time.Sleep(2 * time.Minute)
		if s := b.Snapshot(); s.Window != (ab.Counts{}) || s.Window.FailureRate() != 0 {
			t.Errorf("%+v when all has left", s)
		}
		b.Reset()
		b.ForceOpen()
		if s := b.Snapshot(); s.Window != (ab.Counts{}) {
			t.Errorf("%+v while it is not closed", s)
		}
	})
}

// Functions are asked about the time at which they are called: what has failed while
// an earlier one ran counts.
func TestTripFuncCountsUntilItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *ab.Breaker
		nested, asked := false, []int{}
		first := func(ab.Counts) bool {
			if !nested {
				nested = true
				time.Sleep(20 * time.Second)
				fail(t, b.Allow, 1)
			}
			return false
		}
		second := func(c ab.Counts) bool { asked = append(asked, c.Failures); return false }
		b = ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.TripFunc(time.Minute, 0, first), ab.TripFunc(time.Minute, 0, second))})
		fail(t, b.Allow, 1)
		if len(asked) != 2 || asked[0] != 2 || asked[1] != 2 {
			t.Errorf("asked about %v failures, want 2 and 2", asked)
		}
	})
}
