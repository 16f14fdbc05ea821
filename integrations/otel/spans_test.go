package latchotel_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func tracer(t *testing.T) (trace.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return provider.Tracer("test"), recorder
}

func TestTraceCreate(t *testing.T) {
	tracer, recorder := tracer(t)
	var inside trace.SpanContext
	create := latchotel.TraceCreate(tracer, "clients", func(ctx context.Context, k string) (int, error) {
		inside = trace.SpanContextFromContext(ctx)
		switch k {
		case "error":
			return 0, errDown
		case "panic":
			panic("boom")
		case "exit":
			runtime.Goexit()
		case "not modified":
			return 0, fmt.Errorf("as of yesterday: %w", oncecache.ErrNotModified)
		}
		return 1, nil
	}, func(k string) []attribute.KeyValue { return []attribute.KeyValue{attribute.String("key", k)} })
	c := oncecache.MustNew(oncecache.Config[string, int]{Create: create})

	// The caller's context may end, so that create runs on another goroutine.
	cancelable, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx, caller := tracer.Start(cancelable, "caller")
	for range 2 { // the second is a hit
		v, err := c.GetOrCreateContext(ctx, "k", create)
		require.NoError(t, err)
		require.Equal(t, 1, v)
	}
	spans := recorder.Ended()
	require.Len(t, spans, 1)
	span := spans[0]
	assert.Equal(t, "latchfree.cache.create", span.Name())
	assert.Equal(t, caller.SpanContext().SpanID(), span.Parent().SpanID())
	assert.Equal(t, inside.SpanID(), span.SpanContext().SpanID())
	assert.Equal(t, []attribute.KeyValue{attribute.String("latchfree.cache.name", "clients"), attribute.String("key", "k")}, span.Attributes())
	assert.Equal(t, codes.Unset, span.Status().Code)

	last := func() sdk.ReadOnlySpan { return recorder.Ended()[len(recorder.Ended())-1] }
	_, err := c.GetOrCreateContext(ctx, "error", create)
	require.ErrorIs(t, err, errDown)
	assert.Equal(t, sdk.Status{Code: codes.Error, Description: "down"}, last().Status())
	require.Len(t, last().Events(), 1)
	assert.Equal(t, "exception", last().Events()[0].Name)

	require.Panics(t, func() { _, _ = c.GetOrCreateContext(ctx, "panic", create) })
	assert.Equal(t, codes.Error, last().Status().Code)
	assert.Contains(t, last().Status().Description, "panicked or called runtime.Goexit")

	_, err = c.GetOrCreateContext(ctx, "exit", create)
	require.ErrorIs(t, err, oncecache.ErrGoexit)
	assert.Equal(t, codes.Error, last().Status().Code)
	require.Len(t, recorder.Ended(), 4)

	c.Set("not modified", 7)
	v, err := c.Refresh(ctx, "not modified", nil) // by Config.Create
	require.NoError(t, err)
	assert.Equal(t, 7, v, "the old value stays")
	require.Len(t, recorder.Ended(), 5)
	assert.Equal(t, codes.Unset, last().Status().Code)
	assert.Empty(t, last().Events())
	caller.End()
}

// TestTraceCreatePanics checks that a panic goes on with its value, and that attributes may be absent or panic.
func TestTraceCreatePanics(t *testing.T) {
	tracer, recorder := tracer(t)
	create := latchotel.TraceCreate(tracer, "c\xff", func(context.Context, int) (int, error) { panic("boom") }, nil)
	assert.PanicsWithValue(t, "boom", func() { _, _ = create(context.Background(), 1) })
	bad := latchotel.TraceCreate(tracer, "c", func(context.Context, int) (int, error) { return 1, nil },
		func(int) []attribute.KeyValue { panic("attributes") })
	assert.PanicsWithValue(t, "attributes", func() { _, _ = bad(context.Background(), 1) })
	require.Len(t, recorder.Ended(), 2)
	assert.Equal(t, codes.Error, recorder.Ended()[1].Status().Code)
	assert.Contains(t, recorder.Ended()[0].Attributes(), attribute.String("latchfree.cache.name", "c\uFFFD"))

	assert.PanicsWithValue(t, "latchotel: TraceCreate: nil tracer", func() { latchotel.TraceCreate[int, int](nil, "", nil, nil) })
	assert.PanicsWithValue(t, "latchotel: TraceCreate: nil function", func() { latchotel.TraceCreate[int, int](tracer, "", nil, nil) })
}

func TestExecute(t *testing.T) {
	tracer, recorder := tracer(t)
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
	ctx := context.Background()
	rejected := attribute.Bool("latchfree.breaker.rejected", true)
	var inside trace.SpanContext
	v, err := latchotel.Execute(ctx, tracer, "db", b, func(ctx context.Context) (int, error) {
		inside = trace.SpanContextFromContext(ctx)
		return 7, nil
	})
	require.NoError(t, err)
	require.Equal(t, 7, v)
	// The error of an inner breaker is no rejection by this one.
	_, err = latchotel.Execute(ctx, tracer, "db", b, func(context.Context) (int, error) { return 0, atomicbreaker.ErrOpen })
	require.ErrorIs(t, err, atomicbreaker.ErrOpen)
	require.PanicsWithValue(t, "boom", func() {
		_, _ = latchotel.Execute(ctx, tracer, "db", b, func(context.Context) (int, error) { panic("boom") })
	})
	_, err = latchotel.Execute(ctx, tracer, "db", b, func(context.Context) (int, error) { t.Error("called"); return 0, nil })
	require.ErrorIs(t, err, atomicbreaker.ErrOpen)

	spans := recorder.Ended()
	require.Len(t, spans, 4)
	assert.Equal(t, inside.SpanID(), spans[0].SpanContext().SpanID())
	assert.Equal(t, codes.Unset, spans[0].Status().Code)
	for i, s := range spans {
		assert.Equal(t, "latchfree.breaker.call", s.Name())
		assert.Contains(t, s.Attributes(), attribute.String("latchfree.breaker.name", "db"))
		if i > 0 {
			assert.Equal(t, codes.Error, s.Status().Code, i)
		}
		if i == 3 {
			assert.Contains(t, s.Attributes(), rejected)
		} else {
			assert.NotContains(t, s.Attributes(), rejected)
		}
	}
	fn := func(context.Context) (int, error) { return 0, nil }
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = latchotel.Execute(ended, tracer, "db\xff", new(atomicbreaker.Breaker), fn)
	require.ErrorIs(t, err, context.Canceled)
	last := recorder.Ended()[4].Attributes()
	assert.Equal(t, []attribute.KeyValue{attribute.String("latchfree.breaker.name", "db\uFFFD")}, last, "it was not called, and not rejected")
	var none context.Context
	assert.PanicsWithValue(t, "latchotel: Execute: nil tracer", func() { _, _ = latchotel.Execute(ctx, nil, "", b, fn) })
	assert.PanicsWithValue(t, "latchotel: Execute: nil context", func() { _, _ = latchotel.Execute(none, tracer, "", b, fn) })
	assert.PanicsWithValue(t, "latchotel: Execute: nil breaker", func() { _, _ = latchotel.Execute(ctx, tracer, "", nil, fn) })
	assert.PanicsWithValue(t, "latchotel: Execute: nil function", func() { _, _ = latchotel.Execute[int](ctx, tracer, "", b, nil) })
}
