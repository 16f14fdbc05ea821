package atomicbreaker

import (
	"context"
	"errors"
	"slices"
)

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
	if s != nil && s.classify != nil {
		classify = s.classify
	}
	orElse(func() { o = classify(ctx, err) }, instead)
	if o == Success || o == Ignored {
		return o
	}
	return Failure
}
