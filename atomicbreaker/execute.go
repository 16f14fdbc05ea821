package atomicbreaker

import (
	"context"
	"errors"
	"slices"
)

// Execute is Breaker.Do for a function that returns a result and takes no context.
//
// Execute is lock-free outside fn. It takes effect as Allow and Permit.Done do.
func Execute[T any](b *Breaker, fn func() (T, error)) (T, error) {
	return execute(b, fn) // apart: see internal/atomics/inline.go
}

func execute[T any](b *Breaker, fn func() (T, error)) (result T, err error) {
	if fn == nil {
		panic("atomicbreaker: Execute called with a nil function")
	}
	p, err := b.Allow()
	if err != nil {
		return result, err
	}
	err = errNotReturned
	defer func() { p.Done(err) }()
	return fn()
}

// ExecuteContext is Breaker.Do for a function that returns a result.
//
// ExecuteContext is lock-free outside fn. It takes effect as Allow and Permit.Done do.
func ExecuteContext[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error)) (T, error) {
	return executeContext(ctx, b, fn) // apart likewise
}

func executeContext[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error)) (result T, err error) {
	if err := checkCall(ctx, fn == nil); err != nil {
		return result, err
	}
	p, err := b.Allow()
	if err != nil {
		return result, err
	}
	err = errNotReturned
	defer func() { p.done(ctx, err) }()
	return fn(ctx)
}

// ExecuteGroup is Group.Do for a function that returns a result.
//
// ExecuteGroup is lock-free or blocking outside fn and takes effect as Group says.
func ExecuteGroup[K comparable, T any](ctx context.Context, g *Group[K], k K, fn func(context.Context) (T, error)) (T, error) {
	return executeGroup(ctx, g, k, fn) // apart likewise
}

func executeGroup[K comparable, T any](ctx context.Context, g *Group[K], k K, fn func(context.Context) (T, error)) (result T, err error) {
	if err := checkCall(ctx, fn == nil); err != nil {
		return result, err
	}
	p, err := g.Allow(k)
	if err != nil {
		return result, err
	}
	err = errNotReturned
	defer func() { p.done(ctx, err) }()
	return fn(ctx)
}

// ExecuteResult is ExecuteContext with a classifier of results in place of Config.Classify:
// a result may be a Failure without an error, or Ignored. For a key of a Group, use
// Group.Allow and GroupPermit.Report.
//
// ExecuteResult is lock-free outside fn and classify. It takes effect as Allow and
// Permit.Report do.
func ExecuteResult[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error), classify func(T, error) Outcome) (T, error) {
	return executeResult(ctx, b, fn, classify) // apart likewise
}

func executeResult[T any](ctx context.Context, b *Breaker, fn func(context.Context) (T, error), classify func(T, error) Outcome) (result T, err error) {
	if err := checkCall(ctx, fn == nil || classify == nil); err != nil {
		return result, err
	}
	p, err := b.Allow()
	if err != nil {
		return result, err
	}
	o := Failure // if either does not return
	defer func() { p.Report(o) }()
	result, err = fn(ctx)
	o = classify(result, err)
	return result, err
}

// checkCall checks what Do and ExecuteContext were given, before a permit is
// taken.
func checkCall(ctx context.Context, noFn bool) error {
	if ctx == nil {
		panic("atomicbreaker: Do or Execute called with a nil context")
	}
	if noFn {
		panic("atomicbreaker: Do or Execute called with a nil function")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// orElse calls f. If f panics or calls runtime.Goexit, the same goroutine calls rest
// while it unwinds, which goes on after that.
func orElse(f, rest func()) {
	returned := false
	defer func() {
		if !returned {
			rest()
		}
	}()
	f()
	returned = true
}

// forEach calls f for each of all, even if it does not return for some.
func forEach[T any](all []T, f func(T)) {
	for i, one := range all {
		orElse(func() { f(one) }, func() { forEach(all[i+1:], f) })
	}
}

// errNotReturned is the error of a user's function while it runs. Whoever calls one
// defers done, which does not recover: a panic keeps its stack, and runtime.Goexit goes on.
var errNotReturned = errors.New("atomicbreaker: not returned")

// Classify is the default of Config.Classify. An error is Ignored if ctx was cancelled, if
// it is the rejection of an inner breaker or throttle, or if ctx is nil and it is a
// cancellation. A deadline that has passed is not a cancellation. All other errors are
// Failure; so is a joined error unless all of its errors are Ignored.
func Classify(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return Success
	case ctx != nil && errors.Is(ctx.Err(), context.Canceled),
		ctx != nil && matches(err, ErrRejected),
		ctx == nil && matches(err, ErrRejected, context.Canceled):
		return Ignored
	}
	return Failure
}

// matches reports whether err, and each error that is joined in it, matches one of the
// targets.
func matches(err error, targets ...error) bool {
	for err != nil {
		is, _ := err.(interface{ Is(error) bool })
		if slices.ContainsFunc(targets, func(t error) bool { return err == t || is != nil && is.Is(t) }) {
			return true
		}
		switch x := err.(type) {
		case interface{ Unwrap() []error }:
			joined := x.Unwrap()
			return len(joined) != 0 && !slices.ContainsFunc(joined, func(e error) bool { return e != nil && !matches(e, targets...) })
		case interface{ Unwrap() error }:
			err = x.Unwrap()
		default:
			return false
		}
	}
	return false
}

// outcome classifies the error of a call. It runs user code; if that does not return, it
// calls instead while it unwinds. A nil s means the defaults.
func (s *settings) outcome(ctx context.Context, err error, instead func()) Outcome {
	classify, o := Classify, Failure
	if err == errNotReturned {
		return o
	}
	if s != nil && s.classify != nil {
		classify = s.classify
	}
	orElse(func() { o = classify(ctx, err) }, instead)
	return o.known()
}
