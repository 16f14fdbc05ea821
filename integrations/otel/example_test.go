package latchotel_test

import (
	"context"
	"fmt"

	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/latchfree/latchfree/oncecache"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// A cache reports its metrics, and a span for each creation.
func Example() {
	ctx := context.Background()
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("example")
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("example")

	onCreate, err := latchotel.Creations[string](meter, "clients")
	if err != nil {
		fmt.Println(err)
		return
	}
	clients := oncecache.MustNew(oncecache.Config[string, int]{OnCreate: onCreate})
	registration, err := latchotel.Cache(meter, "clients", clients, latchotel.CacheOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer registration.Unregister()

	dial := func(_ context.Context, region string) (int, error) { return len(region), nil }
	connect := latchotel.TraceCreate(tracer, "clients", dial, func(region string) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("cloud.region", region)}
	})
	client, err := clients.GetOrCreateContext(ctx, "eu", connect)
	fmt.Println(client, err)
	clients.GetOrCreateContext(ctx, "eu", connect) // a hit, without a span

	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &metrics); err != nil {
		fmt.Println(err)
	}
	for _, m := range metrics.ScopeMetrics[0].Metrics {
		if m.Name == "latchfree.cache.created" {
			fmt.Println(m.Name, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		}
	}
	for _, s := range spans.Ended() {
		fmt.Println(s.Name(), s.Attributes()[1].Value.AsString())
	}
	// Output:
	// 2 <nil>
	// latchfree.cache.created 1
	// latchfree.cache.create eu
}
