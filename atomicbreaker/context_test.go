//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

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
