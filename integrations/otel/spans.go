package latchotel

import (
	"context"
	"errors"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/metrics"
	"github.com/latchfree/latchfree/oncecache"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// TraceCreate returns a create function for an oncecache.Cache that runs create in a span,
// which is a child of the span of the call that began the creation. The span has the error
// that create returns, except for oncecache.ErrNotModified; if create does not return, it
// says so. A hit makes no span. Callers that wait for the creation are not linked to it.
//
// The span has the key only as attributes returns it, because keys may be secret or many;
// attributes may be nil. If attributes panics, create has panicked. TraceCreate panics if
// tracer or create is nil.
//
// Make the function once and use it for all calls: a function that is made for a call is an
// allocation, even for a hit.
func TraceCreate[K comparable, V any](tracer trace.Tracer, name string, create func(context.Context, K) (V, error), attributes func(K) []attribute.KeyValue) func(context.Context, K) (V, error) {
	if tracer == nil {
		panic("latchotel: TraceCreate: nil tracer")
	}
	if create == nil {
		panic("latchotel: TraceCreate: nil function")
	}
	instance := attribute.String("latchfree.cache.name", metrics.Text(name))
	return func(ctx context.Context, k K) (v V, err error) {
		ctx, span := tracer.Start(ctx, "latchfree.cache.create", trace.WithAttributes(instance))
		defer end(span, &err)()
		if attributes != nil {
			span.SetAttributes(attributes(k)...)
		}
		return create(ctx, k)
	}
}

// Execute is atomicbreaker.ExecuteContext with a span for the call. A call that is not
// admitted has a span with the error, and the attribute latchfree.breaker.rejected. It
// panics if tracer, ctx, b or fn is nil.
func Execute[T any](ctx context.Context, tracer trace.Tracer, name string, b *atomicbreaker.Breaker, fn func(context.Context) (T, error)) (v T, err error) {
	switch {
	case tracer == nil:
		panic("latchotel: Execute: nil tracer")
	case ctx == nil:
		panic("latchotel: Execute: nil context")
	case b == nil:
		panic("latchotel: Execute: nil breaker")
	case fn == nil:
		panic("latchotel: Execute: nil function")
	}
	ctx, span := tracer.Start(ctx, "latchfree.breaker.call", trace.WithAttributes(attribute.String("latchfree.breaker.name", metrics.Text(name))))
	defer end(span, &err)()
	called := false
	v, err = atomicbreaker.ExecuteContext(ctx, b, func(ctx context.Context) (T, error) {
		called = true
		return fn(ctx)
	})
	if !called && errors.Is(err, atomicbreaker.ErrRejected) {
		span.SetAttributes(attribute.Bool("latchfree.breaker.rejected", true))
	}
	return v, err
}

// errNotReturned is what the span of a function has that ends its goroutine or panics.
var errNotReturned = errors.New("latchotel: the function panicked or called runtime.Goexit")

// end returns a function that ends span with *err, to be deferred. It does not recover, so
// that the stack of a panic stays as it is. Until the caller returns, *err is
// errNotReturned.
func end(span trace.Span, err *error) func() {
	*err = errNotReturned
	return func() {
		if *err != nil && !errors.Is(*err, oncecache.ErrNotModified) {
			span.RecordError(*err)
			span.SetStatus(codes.Error, (*err).Error())
		}
		span.End()
	}
}
