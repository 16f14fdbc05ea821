//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// likeCanceled is an error of a package that makes its own of cancellations.
type likeCanceled struct{ error }

func (likeCanceled) Is(target error) bool { return target == context.Canceled }

// uncomparable errors must not make comparisons panic.
type uncomparable []error

func (e uncomparable) Error() string   { return "uncomparable" }
func (e uncomparable) Unwrap() []error { return e }

// Where the context is known, it decides: all errors of a cancelled call are Ignored,
// and of others only rejections. Without it, cancellations are Ignored. Nothing that
// is joined to a failure hides it.
func TestClassifyErrors(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	expired, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	rejection := fmt.Errorf("fallback: %w", &ab.OpenError{})
	for name, tt := range map[string]struct {
		err             error
		unknown, living ab.Outcome // without a context, and with one that was not cancelled
	}{
		"nil":                        {nil, ab.Success, ab.Success},
		"a failure":                  {errBoom, ab.Failure, ab.Failure},
		"a deadline":                 {context.DeadlineExceeded, ab.Failure, ab.Failure},
		"a cancellation":             {context.Canceled, ab.Ignored, ab.Failure},
		"one that is wrapped":        {&url.Error{Op: "Get", Err: context.Canceled}, ab.Ignored, ab.Failure},
		"one of another type":        {fmt.Errorf("dial: %w", likeCanceled{io.EOF}), ab.Ignored, ab.Failure},
		"cancellations":              {errors.Join(context.Canceled, fmt.Errorf("b: %w", context.Canceled)), ab.Ignored, ab.Failure},
		"a failure, a cancellation":  {errors.Join(errBoom, context.Canceled), ab.Failure, ab.Failure},
		"a cancellation, a failure":  {errors.Join(context.Canceled, errBoom), ab.Failure, ab.Failure},
		"both in one text":           {fmt.Errorf("%w after %w", context.Canceled, errBoom), ab.Failure, ab.Failure},
		"both deep inside":           {fmt.Errorf("a: %w", errors.Join(errors.Join(context.Canceled, fmt.Errorf("b: %w", errBoom)))), ab.Failure, ab.Failure},
		"a rejection":                {ab.ErrOpen, ab.Ignored, ab.Ignored},
		"a rejection of a probe":     {ab.ErrTooManyProbes, ab.Ignored, ab.Ignored},
		"a throttle's":               {throttle.ErrRejected, ab.Ignored, ab.Ignored},
		"one with details":           {rejection, ab.Ignored, ab.Ignored},
		"rejections":                 {errors.Join(rejection, ab.ErrOpen), ab.Ignored, ab.Ignored},
		"a failure, a rejection":     {errors.Join(errBoom, rejection), ab.Failure, ab.Failure},
		"cancellation and rejection": {errors.Join(context.Canceled, rejection), ab.Ignored, ab.Failure},
		"uncomparable":               {uncomparable{context.Canceled, nil, ab.ErrOpen}, ab.Ignored, ab.Failure},
		"uncomparable, a failure":    {uncomparable{context.Canceled, nil, errBoom}, ab.Failure, ab.Failure},
		"joined of nothing":          {uncomparable{}, ab.Failure, ab.Failure},
		"wrapped nothing":            {&url.Error{}, ab.Failure, ab.Failure},
	} {
		for ctx, want := range map[context.Context]ab.Outcome{noContext: tt.unknown, t.Context(): tt.living, expired: tt.living} {
			if got := ab.Classify(ctx, tt.err); got != want {
				t.Errorf("%s with %v: %v, want %v", name, ctx, got, want)
			}
		}
		if got := ab.Classify(cancelled, tt.err); got != ab.Ignored && tt.err != nil {
			t.Errorf("%s, cancelled: %v, want Ignored", name, got)
		}
	}
}

// Every way to make a call classifies by the context that it knows, and hands that to
// a Classify of one's own.
func TestClassifyKnowsTheContext(t *testing.T) {
	joined := errors.Join(errBoom, context.Canceled)
	for _, own := range []bool{false, true} {
		var c ab.Config
		if own {
			c.Classify = ab.Classify
		}
		for name, call := range callers(c) {
			t.Run(fmt.Sprintf("%s/own=%t", name, own), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				call.call(ctx, func(context.Context) error { cancel(); return errBoom })
				wantState(t, call.state(), ab.Closed)
				call.call(t.Context(), func(context.Context) error { return joined })
				wantState(t, call.state(), ab.Open)
			})
		}
		c.Policy = ab.Consecutive(1)
		b := ab.MustNew(c)
		ab.Execute(b, func() (int, error) { return 0, context.Canceled })
		wantVerdict(t, admit(t, b.Allow).Done(context.Canceled), ab.Counted)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantVerdict(t, admit(t, b.Allow).Report(ab.Classify(ctx, errBoom)), ab.Counted)
		wantVerdict(t, admit(t, b.Allow).Done(joined), ab.Tripped)

		th := throttle.MustNew(throttle.Config{Classify: c.Classify})
		wantCounts := func(requests, accepts int) {
			t.Helper()
			if s := th.Snapshot(); s.Requests != requests || s.Accepts != accepts {
				t.Errorf("%d requests and %d accepts, want %d and %d", s.Requests, s.Accepts, requests, accepts)
			}
		}
		for _, err := range []error{joined, context.Canceled, errBoom} {
			th.Do(t.Context(), func(context.Context) error { return err })
		}
		th.Done(joined)
		wantCounts(3, 0)
		ctx, cancel = context.WithCancel(t.Context())
		th.Do(ctx, func(context.Context) error { cancel(); return errBoom })
		th.Done(context.Canceled)
		wantCounts(4, 2)
	}
}

// A half-open breaker opens again at a failure that something harmless is joined to.
func TestJoinedFailuresOfProbes(t *testing.T) {
	for _, with := range []error{context.Canceled, ab.ErrOpen} {
		subjects(t, ab.Config{Policy: ab.Consecutive(1)}, func(t *testing.T, allow allower, reset func()) {
			fail(t, allow, 1)
			time.Sleep(time.Minute)
			wantVerdict(t, admit(t, allow).Done(errors.Join(errBoom, with)), ab.Tripped)
		})
	}
}

// A Classify that panics, exits or returns nonsense costs no slot: the call has failed.
func TestClassifyHarmsNobody(t *testing.T) {
	for name, own := range map[string]func(context.Context, error) ab.Outcome{
		"panics":  func(context.Context, error) ab.Outcome { panic("boom") },
		"exits":   func(context.Context, error) ab.Outcome { runtime.Goexit(); return 0 },
		"invents": func(context.Context, error) ab.Outcome { return 99 },
	} {
		t.Run(name, func(t *testing.T) {
			subjects(t, ab.Config{Policy: ab.Consecutive(1), Classify: own, ProbeTimeout: time.Hour}, func(t *testing.T, allow allower, reset func()) {
				for range 3 { // first a closed breaker, then probes
					p := admit(t, allow)
					goexit(func() {
						defer func() { recover() }()
						p.Done(errBoom)
					})
					reject(t, allow, ab.ErrOpen)
					time.Sleep(time.Hour)
				}
				wantVerdict(t, admit(t, allow).Done(nil), ab.Recovered)
			})
		})
	}
}

// callers are the ways to make a call with a context, on breakers that open at
// the first failure.
func callers(c ab.Config) map[string]struct {
	call  func(context.Context, func(context.Context) error) error
	state func() ab.State
} {
	type caller = struct {
		call  func(context.Context, func(context.Context) error) error
		state func() ab.State
	}
	c.Policy = ab.Consecutive(1)
	do, execute, group := ab.MustNew(c), ab.MustNew(c), ab.MustNewGroup(ab.GroupConfig[string]{Default: c})
	return map[string]caller{
		"Do": {do.Do, do.State},
		"ExecuteContext": {func(ctx context.Context, fn func(context.Context) error) error {
			_, err := ab.ExecuteContext(ctx, execute, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
			return err
		}, execute.State},
		"Group.Do": {func(ctx context.Context, fn func(context.Context) error) error { return group.Do(ctx, "k", fn) },
			func() ab.State { return group.State("k") }},
	}
}

// What a caller has cancelled says nothing, whatever error its cause has made of
// that: errgroup gives the error of a sibling, which net/http returns.
func TestCancelledCallersAreIgnored(t *testing.T) {
	for name, c := range callers(ab.Config{}) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := c.call(ctx, func(ctx context.Context) error {
				cancel(errBoom)
				return fmt.Errorf("get: %w", context.Cause(ctx))
			})
			if !errors.Is(err, errBoom) {
				t.Errorf("error %v, want the function's", err)
			}
			wantState(t, c.state(), ab.Closed)
		})
	}
}

// A deadline is none of the caller's whims, and neither is a context that ends
// only within the function.
//
// Checks I4.
func TestDeadlinesAreFailures(t *testing.T) {
	for name, of := range map[string]func(context.Context) (context.Context, error){
		"deadline": func(ctx context.Context) (context.Context, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			context.AfterFunc(ctx, cancel)
			return ctx, context.DeadlineExceeded
		},
		"deadline with a cause": func(ctx context.Context) (context.Context, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Second, errBoom)
			context.AfterFunc(ctx, cancel)
			return ctx, errBoom
		},
		"inner": func(ctx context.Context) (context.Context, error) { return ctx, errBoom },
	} {
		for way, c := range callers(ab.Config{}) {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, want := of(t.Context())
					c.call(ctx, func(ctx context.Context) error {
						inner, cancel := context.WithCancel(ctx)
						cancel()
						<-inner.Done()
						time.Sleep(time.Second)
						return want
					})
					wantState(t, c.state(), ab.Open)
				})
			})
		}
	}
}

// Who has cancelled a call that then succeeded has not taken anything back, and
// who panics has failed.
func TestCancelledCallsThatEndOtherwise(t *testing.T) {
	for name, c := range callers(ab.Config{OpenTimeout: time.Millisecond}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				panics(t, "boom", func() {
					c.call(ctx, func(context.Context) error { cancel(); panic("boom") })
				})
				wantState(t, c.state(), ab.Open)
				time.Sleep(time.Millisecond)
				ctx, cancel = context.WithCancel(t.Context())
				c.call(ctx, func(context.Context) error { cancel(); return errBoom })
				wantState(t, c.state(), ab.HalfOpen) // the probe's slot is free
				ctx, cancel = context.WithCancel(t.Context())
				c.call(ctx, func(context.Context) error { cancel(); return nil })
				wantState(t, c.state(), ab.Closed)
			})
		})
	}
}

// Classify, where there is one, decides about all errors.
func TestClassifyOfCancelledCalls(t *testing.T) {
	for name, c := range callers(ab.Config{Classify: func(context.Context, error) ab.Outcome { return ab.Failure }}) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c.call(ctx, func(context.Context) error { cancel(); return ctx.Err() })
			wantState(t, c.state(), ab.Open)
		})
	}
}

// What an inner breaker has rejected says nothing about the outer one's
// dependency: nobody has called it.
func TestInnerRejectionsAreIgnored(t *testing.T) {
	inner := ab.MustNew(ab.Config{DetailedErrors: true})
	inner.ForceOpen()
	for name, c := range callers(ab.Config{}) {
		t.Run(name, func(t *testing.T) {
			for _, b := range []*ab.Breaker{inner, forcedOpen()} {
				err := c.call(t.Context(), func(ctx context.Context) error {
					return b.Do(ctx, func(context.Context) error { return nil })
				})
				if !errors.Is(err, ab.ErrRejected) {
					t.Errorf("error %v, want the inner one's", err)
				}
			}
			wantState(t, c.state(), ab.Closed)
		})
	}
	subjects(t, ab.Config{Policy: ab.Consecutive(1)}, func(t *testing.T, allow allower, reset func()) {
		wantVerdict(t, admit(t, allow).Done(ab.ErrTooManyProbes), ab.Counted)
		wantVerdict(t, admit(t, allow).Done(errBoom), ab.Tripped)
	})
}

func forcedOpen() *ab.Breaker {
	b := new(ab.Breaker)
	b.ForceOpen()
	return b
}

// ExecuteGroup is Group.Do with a result: the breaker is the key's, and nothing is
// lost however the function ends.
func TestExecuteGroup(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(3)}})
	call := func(k string, fn func(context.Context) (int, error)) (int, error) {
		return ab.ExecuteGroup(t.Context(), g, k, fn)
	}
	if n, err := call("a", func(context.Context) (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := call("a", func(context.Context) (int, error) { return 8, errBoom }); n != 8 || err != errBoom {
		t.Errorf("%d, %v", n, err)
	}
	panics(t, "boom", func() { call("a", func(context.Context) (int, error) { panic("boom") }) })
	goexit(func() { call("a", func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }) })
	if _, err := call("a", func(context.Context) (int, error) { t.Error("called"); return 0, nil }); !errors.Is(err, ab.ErrOpen) {
		t.Errorf("error %v, want ErrOpen", err)
	}
	wantState(t, g.State("b"), ab.Closed)
	ctx, cancel := context.WithCancelCause(t.Context())
	ab.ExecuteGroup(ctx, g, "b", func(context.Context) (int, error) { cancel(errBoom); return 0, errBoom })
	if s := g.Snapshot("b"); s.Failures != 0 {
		t.Errorf("%+v after a cancelled call", s)
	}
	if _, err := ab.ExecuteGroup(ctx, g, "b", func(context.Context) (int, error) { t.Error("called"); return 0, nil }); err != errBoom {
		t.Errorf("error %v, want the cause", err)
	}
	panics(t, "atomicbreaker: ", func() { ab.ExecuteGroup[string, int](t.Context(), g, "b", nil) })
}

// ExecuteResult goes by what its classifier says of the result, and by nothing else. If
// that does not return, the call has failed.
func TestExecuteResult(t *testing.T) {
	b := ab.MustNew(ab.Config{RecordTotals: true, Classify: func(context.Context, error) ab.Outcome { t.Error("called"); return ab.Ignored }})
	execute := func(err error, classify func(int, error) ab.Outcome) {
		n, got := ab.ExecuteResult(t.Context(), b, func(context.Context) (int, error) { return 7, err }, classify)
		if n != 7 || got != err {
			t.Errorf("%d, %v, want 7, %v", n, got, err)
		}
	}
	says := func(o ab.Outcome, want error) func(int, error) ab.Outcome {
		return func(n int, err error) ab.Outcome {
			if n != 7 || err != want {
				t.Errorf("asked about %d, %v", n, err)
			}
			return o
		}
	}
	execute(nil, says(ab.Failure, nil))
	execute(errBoom, says(ab.Success, errBoom))
	execute(context.Canceled, says(ab.Ignored, context.Canceled))
	execute(nil, says(ab.Outcome(9), nil))
	panics(t, errBoom.Error(), func() { execute(nil, func(int, error) ab.Outcome { panic(errBoom) }) })
	goexit(func() { execute(nil, func(int, error) ab.Outcome { runtime.Goexit(); return ab.Success }) })
	panics(t, errBoom.Error(), func() {
		ab.ExecuteResult(t.Context(), b, func(context.Context) (int, error) { panic(errBoom) }, says(ab.Success, nil))
	})
	if s := b.Stats(); s.TotalSuccesses != 1 || s.TotalFailures != 5 || s.TotalIgnored != 1 || b.Snapshot().Failures != 4 {
		t.Errorf("%+v, %+v", s, b.Snapshot())
	}

	b.Trip(0)
	fn := func(context.Context) (int, error) { t.Error("called"); return 7, nil }
	if n, err := ab.ExecuteResult(t.Context(), b, fn, says(ab.Success, nil)); n != 0 || err != ab.ErrOpen {
		t.Errorf("%d, %v while open", n, err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	if _, err := ab.ExecuteResult(ended, b, fn, says(ab.Success, nil)); err != errBoom {
		t.Error(err)
	}
	for _, f := range []func(){
		func() { ab.ExecuteResult(t.Context(), b, nil, says(ab.Success, nil)) },
		func() { ab.ExecuteResult(t.Context(), b, fn, nil) },
		func() { ab.ExecuteResult(noContext, b, fn, says(ab.Success, nil)) },
	} {
		panics(t, "atomicbreaker: Do or Execute called with a nil", f)
	}
}
