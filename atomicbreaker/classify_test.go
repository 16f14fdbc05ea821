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
