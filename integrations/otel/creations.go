package latchotel

import (
	"context"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/internal/metrics"
	"go.opentelemetry.io/otel/metric"
)

// Creations returns a function for oncecache.Config.OnCreate that measures how long
// creations take, in a histogram. It panics if meter is nil.
func Creations[K comparable](meter metric.Meter, name string) (func(K, time.Duration, error), error) {
	needMeter(meter, "Creations")
	f := metrics.Creations()
	histogram, err := meter.Float64Histogram(prefix+f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help))
	if err != nil {
		return nil, fmt.Errorf("latchotel: %w", err)
	}
	options := make(map[string]metric.MeasurementOption)
	for _, result := range metrics.Results() {
		options[result] = metric.WithAttributes(append(attributes(f, []string{result}), instance("cache", name))...)
	}
	return func(_ K, took time.Duration, err error) {
		histogram.Record(context.Background(), took.Seconds(), options[metrics.Result(err)])
	}, nil
}
