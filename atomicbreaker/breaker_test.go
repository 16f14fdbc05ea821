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

// Whatever calls a function with a context hands on the one that it was given.
func TestFunctionsGetTheContext(t *testing.T) {
	b, g := ab.MustNew(ab.Config{}), ab.MustNewGroup(ab.GroupConfig[string]{})
	ctx := context.WithValue(t.Context(), t, "value")
	var got context.Context
	fn := func(ctx context.Context) (int, error) { got = ctx; return 7, nil }
	plain := func(ctx context.Context) error { got = ctx; return nil }
	for name, call := range map[string]func() (int, error){
		"Do":             func() (int, error) { return 7, b.Do(ctx, plain) },
		"Group.Do":       func() (int, error) { return 7, g.Do(ctx, "k", plain) },
		"ExecuteContext": func() (int, error) { return ab.ExecuteContext(ctx, b, fn) },
		"ExecuteGroup":   func() (int, error) { return ab.ExecuteGroup(ctx, g, "k", fn) },
		"ExecuteResult": func() (int, error) {
			return ab.ExecuteResult(ctx, b, fn, func(int, error) ab.Outcome { return ab.Success })
		},
	} {
		got = nil
		if n, err := call(); n != 7 || err != nil || got != ctx {
			t.Errorf("%s: %d, %v, with another context: %v", name, n, err, got != ctx)
		}
	}
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

// A probe has its whole time, also if it was admitted right after another.
func TestLeasesAreExact(t *testing.T) {
	const timeout = 10 * time.Second
	subjects(t, probing(2, 1, timeout), func(t *testing.T, allow allower, reset func()) {
		open(t, allow)
		admit(t, allow)
		time.Sleep(1)
		admit(t, allow)
		time.Sleep(timeout - 1)
		reject(t, allow, ab.ErrTooManyProbes)
		time.Sleep(1)
		admit(t, allow)
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
	if b, g := b.Stats(), g.Stats(); b.Rejected != 29 || g.Rejected != 9 || b.Opened != 1 || g.Opened != 1 || b.Late+g.Late != 0 {
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
