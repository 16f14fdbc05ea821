package latchotel

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/metrics"
	"go.opentelemetry.io/otel/metric"
)

// Transitions returns a function for atomicbreaker.Config.OnStateChange that counts the
// changes of a breaker by their states and reasons. It panics if meter is nil.
func Transitions(meter metric.Meter, name string) (func(atomicbreaker.Event), error) {
	needMeter(meter, "Transitions")
	return transitions(meter, metrics.Transitions(), "breaker", name)
}

// KeyTransitions returns a function for atomicbreaker.GroupConfig.OnStateChange that counts
// the changes of all keys together by their states and reasons. It panics if meter is nil.
func KeyTransitions[K comparable](meter metric.Meter, name string) (func(K, atomicbreaker.Event), error) {
	needMeter(meter, "KeyTransitions")
	count, err := transitions(meter, metrics.GroupTransitions(), "breaker_group", name)
	if err != nil {
		return nil, err
	}
	return func(_ K, e atomicbreaker.Event) { count(e) }, nil
}

func transitions(meter metric.Meter, f *metrics.Family, of, name string) (func(atomicbreaker.Event), error) {
	counter, err := meter.Int64Counter(prefix+f.Name, metric.WithUnit(f.Unit), metric.WithDescription(f.Help))
	if err != nil {
		return nil, fmt.Errorf("latchotel: %w", err)
	}
	own := instance(of, name)
	return func(e atomicbreaker.Event) {
		counter.Add(context.Background(), 1, metric.WithAttributes(append(attributes(f, metrics.Change(e)), own)...))
	}, nil
}
