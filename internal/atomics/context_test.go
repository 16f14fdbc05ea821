package atomics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

func TestWaitContext(t *testing.T) {
	cause := errors.New("cause")
	e, never := atomics.MakeEvent(), atomics.MakeEvent()
	parent, end := atomics.WithCancelCause(context.Background())
	ctx, cancel := atomics.WithCancel(parent)
	defer cancel()
	ran, stopped := make(chan bool, 1), make(chan bool, 1)
	atomics.AfterFunc(ctx, func() { ran <- true })
	if stop := atomics.AfterFunc(ctx, func() { stopped <- false }); !stop() {
		t.Error("a function that does not run yet cannot be stopped")
	}
	atomics.Go(e.Fire)
	if err := e.WaitContext(ctx); err != nil {
		t.Error(err)
	}
	atomics.Go(func() { end(cause) })
	if err := never.WaitContext(ctx); err != context.Canceled || context.Cause(ctx) != cause {
		t.Errorf("the wait ended with %v, its context with %v", err, context.Cause(ctx))
	}
	<-ran
	if len(stopped) != 0 {
		t.Error("a stopped function ran")
	}
}

func TestWithTimeoutCause(t *testing.T) {
	cause := errors.New("cause")
	never := atomics.MakeEvent()
	ctx, cancel := atomics.WithTimeoutCause(context.Background(), time.Microsecond, cause)
	defer cancel()
	if err := never.WaitContext(ctx); err != context.DeadlineExceeded || context.Cause(ctx) != cause {
		t.Errorf("the wait ended with %v, its context with %v", err, context.Cause(ctx))
	}
	ctx, cancel = atomics.WithTimeoutCause(context.Background(), time.Hour, cause)
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > time.Hour || ctx.Err() != nil {
		t.Error(at, ok, ctx.Err())
	}
	if cancel(); ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled {
		t.Error(ctx.Err(), context.Cause(ctx))
	}
}
