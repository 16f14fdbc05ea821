//go:build !modelcheck

package atomicbreaker_test

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func TestZeroBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b ab.Breaker
		wantState(t, b.State(), ab.Closed)
		if s := b.Snapshot(); s != (ab.Snapshot{}) {
			t.Fatalf("Snapshot of the zero Breaker: %+v", s)
		}
		wantVerdict(t, fail(t, b.Allow, 4), ab.Counted)
		wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
		reject(t, b.Allow, ab.ErrOpen)
		time.Sleep(time.Minute - time.Millisecond)
		wantState(t, b.State(), ab.Open)
		reject(t, b.Allow, ab.ErrOpen)
		time.Sleep(time.Millisecond)
		wantState(t, b.State(), ab.HalfOpen)
		p := admit(t, b.Allow)
		reject(t, b.Allow, ab.ErrTooManyProbes)
		wantVerdict(t, p.Success(), ab.Recovered)
		wantState(t, b.State(), ab.Closed)
	})
}

func TestZeroPermit(t *testing.T) {
	for _, p := range []permit{ab.Permit{}, ab.GroupPermit[string]{}} {
		wantVerdict(t, p.Success(), ab.Late)
		wantVerdict(t, p.Failure(), ab.Late)
		wantVerdict(t, p.Cancel(), ab.Late)
		wantVerdict(t, p.Trip(0), ab.Late)
		wantVerdict(t, p.Done(nil), ab.Late)
		wantVerdict(t, p.Done(errBoom), ab.Late)
	}
}

func TestErrorsMatchErrRejected(t *testing.T) {
	for _, err := range []error{ab.ErrOpen, ab.ErrTooManyProbes} {
		if !errors.Is(err, ab.ErrRejected) {
			t.Errorf("%v does not match ErrRejected", err)
		}
	}
	if errors.Is(ab.ErrOpen, ab.ErrTooManyProbes) {
		t.Error("ErrOpen matches ErrTooManyProbes")
	}
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Name: "billing", Policy: ab.Consecutive(2), OpenTimeout: time.Second, Probes: 2, CloseAfter: 3})
		fail(t, b.Allow, 1)
		want := func(s ab.Snapshot) {
			t.Helper()
			if got := b.Snapshot(); got != s {
				t.Fatalf("Snapshot\n got %+v\nwant %+v", got, s)
			}
		}
		want(ab.Snapshot{Name: "billing", Failures: 1})
		fail(t, b.Allow, 1)
		time.Sleep(300*time.Millisecond + 400*time.Microsecond)
		want(ab.Snapshot{Name: "billing", State: ab.Open, Would: ab.Open, Streak: 1, Generation: 1, RetryAfter: 699600 * time.Microsecond})
		time.Sleep(time.Second)
		want(ab.Snapshot{Name: "billing", State: ab.HalfOpen, Would: ab.HalfOpen, Streak: 1, Generation: 1})
		admit(t, b.Allow)
		admit(t, b.Allow).Success()
		want(ab.Snapshot{Name: "billing", State: ab.HalfOpen, Would: ab.HalfOpen, Streak: 1, Generation: 2, Successes: 1, InFlight: 1})
		b.Reset()
		want(ab.Snapshot{Name: "billing", Generation: 3})
	})
}

func TestLatchedUntilReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{-1, math.MinInt64} {
			b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: timeout})
			fail(t, b.Allow, 1)
			for range 5 {
				time.Sleep(300 * 24 * time.Hour)
				reject(t, b.Allow, ab.ErrOpen)
				wantState(t, b.State(), ab.Open)
			}
			if got := b.Snapshot().RetryAfter; got != math.MaxInt64 {
				t.Fatalf("RetryAfter %v, want the maximum", got)
			}
			b.Reset()
			admit(t, b.Allow).Success()
		}
	})
}

// Who sleeps for OpenTimeout after the failure, or for what RetryAfter says, and then
// calls, is admitted, wherever in a tick the failure was. The breaker rejects until a
// millisecond before that.
func TestCallAfterTheOpenTime(t *testing.T) {
	const tick = time.Millisecond
	for _, timeout := range []time.Duration{1, tick / 2, tick, 3 * tick / 2, 5 * tick, time.Second + 1} {
		for _, offset := range []time.Duration{0, 1, tick / 2, tick - 1} {
			for name, trip := range map[string]func(*ab.Breaker){
				"Failure": func(b *ab.Breaker) { wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped) },
				"Trip":    func(b *ab.Breaker) { b.Trip(timeout) },
				"Permit":  func(b *ab.Breaker) { wantVerdict(t, admit(t, b.Allow).Trip(timeout), ab.Tripped) },
			} {
				t.Run(fmt.Sprintf("%s for %v at %v", name, timeout, offset), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: timeout, DetailedErrors: true})
						time.Sleep(offset)
						trip(b)
						left := b.Snapshot().RetryAfter
						if left > timeout || left < timeout-tick {
							t.Fatalf("RetryAfter %v, want %v", left, timeout)
						}
						if early := timeout - tick; early > 0 {
							time.Sleep(early)
							reject(t, b.Allow, ab.ErrOpen)
							time.Sleep(tick)
						} else {
							time.Sleep(timeout)
						}
						wantState(t, b.State(), ab.HalfOpen)
						admit(t, b.Allow).Success()
						b.Trip(timeout)
						time.Sleep(b.Snapshot().RetryAfter)
						admit(t, b.Allow).Success()
					})
				})
			}
		}
	}
}

// A slot is a probe's for ProbeTimeout, and free for a call that is made then, also
// when the probe was lost for so long that its deadline reads as one ahead.
func TestCallAfterTheProbeTime(t *testing.T) {
	const lap = 1 << 21 * 128 * time.Millisecond // after which leases come again
	for _, timeout := range []time.Duration{1, time.Millisecond, 100 * time.Millisecond, 10*time.Second + 1, time.Hour, 37 * time.Hour} {
		for _, offset := range []time.Duration{0, 1, 127 * time.Millisecond} {
			for _, later := range []time.Duration{0, 75 * time.Hour, lap - timeout, lap - timeout/2, lap - 1, 3*lap - 1} {
				t.Run(fmt.Sprintf("%v at %v, %v later", timeout, offset, later), func(t *testing.T) {
					subjects(t, ab.Config{ProbeTimeout: timeout, DetailedErrors: true}, func(t *testing.T, allow allower, reset func()) {
						fail(t, allow, 5)
						time.Sleep(time.Minute + offset)
						admit(t, allow)
						time.Sleep(timeout - 1)
						_, err := allow()
						var open *ab.OpenError
						if !errors.As(err, &open) || open.RetryAfter != 1 || !errors.Is(err, ab.ErrTooManyProbes) {
							t.Fatalf("Allow: %v", err)
						}
						time.Sleep(1 + later)
						admit(t, allow)
					})
				})
			}
		}
	}
}

// Checks I2, I5.
func TestBackoffDoublesUpToMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, MaxOpenTimeout: 5 * time.Second})
		fail(t, b.Allow, 1)
		for i, d := range []time.Duration{1, 2, 4, 5, 5} {
			s := b.Snapshot()
			if s.RetryAfter != d*time.Second || s.Streak != i+1 {
				t.Fatalf("opening %d: RetryAfter %v, streak %d, want %v, %d", i+1, s.RetryAfter, s.Streak, d*time.Second, i+1)
			}
			time.Sleep(s.RetryAfter)
			wantVerdict(t, admit(t, b.Allow).Failure(), ab.Tripped)
		}
		time.Sleep(5 * time.Second)
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)
		fail(t, b.Allow, 1)
		if got := b.Snapshot().RetryAfter; got != time.Second {
			t.Fatalf("RetryAfter %v after a recovery, want the first again", got)
		}
	})
}

// Without a MaxOpenTimeout above OpenTimeout, each opening lasts for OpenTimeout.
func TestOpenTimeIsConstant(t *testing.T) {
	for _, c := range []ab.Config{{}, {OpenTimeout: time.Second}, {OpenTimeout: time.Second, MaxOpenTimeout: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			c.Policy = ab.Consecutive(1)
			b, want := ab.MustNew(c), cmp.Or(c.OpenTimeout, ab.DefaultOpenTimeout)
			fail(t, b.Allow, 1)
			for range 40 { // beyond the longest streak
				if got := b.Snapshot().RetryAfter; got != want {
					t.Fatalf("%+v: RetryAfter %v, want %v", c, got, want)
				}
				time.Sleep(want)
				wantVerdict(t, admit(t, b.Allow).Failure(), ab.Tripped)
			}
			if s := b.Snapshot(); s.Streak != 31 {
				t.Fatalf("streak %d, want 31", s.Streak)
			}
		})
	}
}

// What Backoff says is bounded by ten times OpenTimeout, unless MaxOpenTimeout is set.
//
// Checks I2, I5.
func TestBackoffDefaultMaxIsTenfold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, Backoff: func(streak int) time.Duration { return time.Duration(streak) * 4 * time.Second }})
		fail(t, b.Allow, 1)
		for _, want := range []time.Duration{4, 8, 10, 10} {
			if got := b.Snapshot().RetryAfter; got != want*time.Second {
				t.Fatalf("RetryAfter %v, want %vs", got, int(want))
			}
			time.Sleep(want * time.Second)
			wantVerdict(t, admit(t, b.Allow).Failure(), ab.Tripped)
		}
	})
}

// Checks I2, I5.
func TestBackoffFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		b := ab.MustNew(ab.Config{
			Policy: ab.Consecutive(1), OpenTimeout: 2 * time.Second, MaxOpenTimeout: 7 * time.Second,
			Backoff: func(streak int) time.Duration {
				if calls++; streak != calls {
					t.Errorf("call %d with streak %d", calls, streak)
				}
				return []time.Duration{3 * time.Second, -1, time.Hour, 0}[(streak-1)%4]
			},
		})
		fail(t, b.Allow, 1)
		for i, d := range []time.Duration{3, 2, 7, 2, 3} {
			if got := b.Snapshot().RetryAfter; got != d*time.Second {
				t.Fatalf("opening %d: RetryAfter %v, want %v", i+1, got, d*time.Second)
			}
			time.Sleep(d * time.Second)
			admit(t, b.Allow).Failure()
		}
		if calls != 31 {
			t.Fatalf("Backoff was called %d times, want 31 by New and none later", calls)
		}
	})
}

func TestDoReturnsWhatFnReturns(t *testing.T) {
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(2)})
	ctx := context.WithValue(t.Context(), t, "value")
	err := b.Do(ctx, func(got context.Context) error {
		if got != ctx {
			t.Error("fn got another context")
		}
		return errBoom
	})
	if err != errBoom {
		t.Fatalf("Do: %v, want fn's error", err)
	}
	n, err := ab.Execute(b, func() (int, error) { return 7, errBoom })
	if n != 7 || err != errBoom {
		t.Fatalf("Execute: %d, %v, want fn's results", n, err)
	}
	wantState(t, b.State(), ab.Open)
	n, err = ab.Execute(b, func() (int, error) { t.Error("fn was called"); return 7, nil })
	if n != 0 || err != ab.ErrOpen {
		t.Fatalf("Execute: %d, %v, want 0, ErrOpen", n, err)
	}
	if err := b.Do(ctx, func(context.Context) error { t.Error("fn was called"); return nil }); err != ab.ErrOpen {
		t.Fatalf("Do: %v, want ErrOpen", err)
	}
	s, err := ab.ExecuteContext(ctx, b, func(context.Context) (string, error) { t.Error("fn was called"); return "x", nil })
	if s != "" || err != ab.ErrOpen {
		t.Fatalf("ExecuteContext: %q, %v, want nothing, ErrOpen", s, err)
	}
	b.Reset()
	for _, want := range []error{nil, errBoom, errBoom} {
		s, err = ab.ExecuteContext(ctx, b, func(got context.Context) (string, error) { return got.Value(t).(string), want })
		if s != "value" || err != want {
			t.Fatalf("ExecuteContext: %q, %v, want fn's results", s, err)
		}
	}
	wantState(t, b.State(), ab.Open)
}

// A context that is done costs neither a call nor a probe.
func TestDoneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second})
		fail(t, b.Allow, 1)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		err := b.Do(ctx, func(context.Context) error { t.Error("fn was called"); return nil })
		if err != errBoom {
			t.Fatalf("Do: %v, want the cause", err)
		}
		_, err = ab.ExecuteContext(ctx, b, func(context.Context) (int, error) { t.Error("fn was called"); return 0, nil })
		if err != errBoom {
			t.Fatalf("ExecuteContext: %v, want the cause", err)
		}
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)

		var g ab.Group[string]
		err = g.Do(ctx, "k", func(context.Context) error { t.Error("fn was called"); return nil })
		if err != errBoom || g.Len() != 0 {
			t.Fatalf("Group.Do: %v, want the cause; %d keys", err, g.Len())
		}
	})
}

// Mistakes are found before a probe is taken.
func TestNilArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second})
		var g ab.Group[string]
		var none context.Context
		fn := func(context.Context) error { return nil }
		fail(t, b.Allow, 1)
		time.Sleep(time.Second)
		panics(t, "atomicbreaker: ", func() { b.Do(t.Context(), nil) })
		panics(t, "atomicbreaker: ", func() { b.Do(none, fn) })
		panics(t, "atomicbreaker: ", func() { g.Do(t.Context(), "k", nil) })
		panics(t, "atomicbreaker: ", func() { g.Do(none, "k", fn) })
		panics(t, "atomicbreaker: ", func() { ab.Execute[int](b, nil) })
		panics(t, "atomicbreaker: ", func() { ab.ExecuteContext[int](t.Context(), b, nil) })
		panics(t, "atomicbreaker: ", func() {
			ab.ExecuteContext(none, b, func(context.Context) (int, error) { return 0, nil })
		})
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)
	})
}

func TestClassify(t *testing.T) {
	errNotFound, errOdd := errors.New("not found"), errors.New("odd")
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(2), Classify: func(_ context.Context, err error) ab.Outcome {
		switch err {
		case errNotFound:
			return ab.Success
		case context.Canceled:
			return ab.Ignored
		case errOdd:
			return ab.Outcome(99)
		case nil:
			t.Error("Classify was asked about nil")
		}
		return ab.Failure
	}})
	failures := func(want int) {
		t.Helper()
		if got := b.Snapshot().Failures; got != want {
			t.Fatalf("%d failures, want %d", got, want)
		}
	}
	admit(t, b.Allow).Done(errBoom)
	failures(1)
	admit(t, b.Allow).Done(context.Canceled)
	failures(1)
	admit(t, b.Allow).Done(errNotFound)
	failures(0)
	admit(t, b.Allow).Done(errOdd)
	failures(1)
	admit(t, b.Allow).Done(nil)
	failures(0)
}

// T41: what Classify breaks counts once, as a failure, and its panic goes on.
//
// Reported bug 41, gobreaker: classifier panics count twice.
func TestT41_PanicInClassify(t *testing.T) {
	classify := func(context.Context, error) ab.Outcome { panic("classify") }
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(9), Classify: classify})
	panics(t, "classify", func() { admit(t, b.Allow).Done(errBoom) })
	panics(t, "classify", func() { b.Do(t.Context(), func(context.Context) error { return errBoom }) })
	panics(t, "classify", func() { ab.Execute(b, func() (int, error) { return 0, errBoom }) })
	if got := b.Snapshot().Failures; got != 3 {
		t.Fatalf("%d failures, want 3", got)
	}
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(9), Classify: classify}})
	panics(t, "classify", func() { admit(t, keyed(g, "k")).Done(errBoom) })
	panics(t, "classify", func() { g.Do(t.Context(), "k", func(context.Context) error { return errBoom }) })
	for _, s := range g.All() {
		if s.Failures != 2 {
			t.Fatalf("%d failures of the key, want 2", s.Failures)
		}
	}
}

// T27: a probe that panics or calls Goexit has failed, and leaves no slot
// taken.
//
// Reported bug 27, Failsafe-go, gobreaker: so does a panic or runtime.Goexit.
func TestT27_PanicAndGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second})
		g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second}})
		ends := map[string]func(){
			"panic":  func() { defer func() { recover() }(); endWithPanic(b, g) },
			"goexit": func() { goexit(func() { endWithGoexit(b, g) }) },
		}
		for name, end := range ends {
			for range 3 { // once from closed, then as probes
				end()
				wantState(t, b.State(), ab.Open)
				wantState(t, g.State(1), ab.Open)
				time.Sleep(time.Second)
			}
			wantVerdict(t, admit(t, b.Allow).Success(), ab.Recovered)
			wantVerdict(t, admit(t, keyed(g, 1)).Success(), ab.Recovered)
			_ = name
		}
	})
}

func endWithPanic(b *ab.Breaker, g *ab.Group[int]) {
	defer func() { recover() }()
	defer g.Do(context.Background(), 1, func(context.Context) error { panic("boom") })
	ab.Execute(b, func() (int, error) { panic("boom") })
}

func endWithGoexit(b *ab.Breaker, g *ab.Group[int]) {
	defer g.Do(context.Background(), 1, func(context.Context) error { runtime.Goexit(); return nil })
	b.Do(context.Background(), func(context.Context) error { runtime.Goexit(); return nil })
}

// A panic goes through Do with the stack on which it began.
func TestPanicKeepsItsStack(t *testing.T) {
	var b ab.Breaker
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
		pcs := make([]uintptr, 64)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
		for {
			f, more := frames.Next()
			if f.Function == "github.com/latchfree/latchfree/atomicbreaker_test.whereItBegan" {
				return
			}
			if !more {
				t.Fatal("the stack does not show where the panic began")
			}
		}
	}()
	b.Do(t.Context(), func(context.Context) error { whereItBegan(); return nil })
}

//go:noinline
func whereItBegan() { panic("boom") }

// Results reported twice are noticed where that is possible: they can neither
// give back the slot of another probe epoch nor make the count negative.
//
// Checks I3.
func TestDoubleDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, CloseAfter: 9})
		fail(t, b.Allow, 1)
		time.Sleep(time.Second)
		p := admit(t, b.Allow)
		wantVerdict(t, p.Success(), ab.Counted)
		wantVerdict(t, p.Success(), ab.Late)
		wantVerdict(t, p.Cancel(), ab.Late)
		wantVerdict(t, p.Failure(), ab.Late)
		if n := b.Snapshot().InFlight; n != 0 {
			t.Fatalf("%d probes in flight, want 0", n)
		}
	})
}

// What has a name is that name as text, and what has none its number.
func TestEveryValueHasAName(t *testing.T) {
	names[ab.State](t, "State", ab.Closed, ab.Shadow)
	names[ab.Outcome](t, "Outcome", ab.Success, ab.Ignored)
	names[ab.Verdict](t, "Verdict", ab.Counted, ab.Recovered)
	names[ab.Reason](t, "Reason", ab.ReasonThreshold, ab.ReasonTripFunc)
}

// names tries all values of a type, of which these have names.
func names[T interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}](t *testing.T, kind string, first, last T) {
	seen := map[string]bool{}
	for i := range 256 {
		v := T(i)
		if text, err := v.MarshalText(); err != nil || string(text) != v.String() || seen[v.String()] {
			t.Errorf("%v: MarshalText: %s, %v", v, text, err)
		}
		seen[v.String()] = true
		if number := fmt.Sprintf("%s(%d)", kind, i); (v.String() != number) != (first <= v && v <= last) {
			t.Errorf("%s is called %v", number, v)
		}
	}
}

// A name costs nothing: it may be a label of a metric.
func TestNamesDoNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		_, _, _, _ = ab.Shadow.String(), ab.Ignored.String(), ab.Recovered.String(), ab.ReasonDisable.String()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
