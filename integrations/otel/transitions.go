package latchotel

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/atomicbreaker"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Transitions returns a function for atomicbreaker.Config.OnStateChange that counts the
// changes of a breaker by their states and reasons. It panics if meter is nil.
func Transitions(meter metric.Meter, name string) (func(atomicbreaker.Event), error) {
	if meter == nil {
		panic("latchotel: Transitions: nil meter")
	}
	return transitions(meter, "latchfree.breaker", name, "Changes of the breaker, as Config.OnStateChange gets them.")
}

// KeyTransitions returns a function for atomicbreaker.GroupConfig.OnStateChange that counts
// the changes of all keys together by their states and reasons. It panics if meter is nil.
func KeyTransitions[K comparable](meter metric.Meter, name string) (func(K, atomicbreaker.Event), error) {
	if meter == nil {
		panic("latchotel: KeyTransitions: nil meter")
	}
	count, err := transitions(meter, "latchfree.breaker_group", name, "Changes of all keys, as GroupConfig.OnStateChange gets them.")
	if err != nil {
		return nil, err
	}
	return func(_ K, e atomicbreaker.Event) { count(e) }, nil
}

func transitions(meter metric.Meter, kind, name, help string) (func(atomicbreaker.Event), error) {
	counter, err := meter.Int64Counter(kind+".transitions", metric.WithUnit("{transition}"), metric.WithDescription(help))
	if err != nil {
		return nil, fmt.Errorf("latchotel: %w", err)
	}
	instance := attribute.String(kind+".name", utf8(name))
	return func(e atomicbreaker.Event) {
		counter.Add(context.Background(), 1, metric.WithAttributes(instance,
			attribute.String("latchfree.breaker.from", e.From.String()),
			attribute.String("latchfree.breaker.to", e.To.String()),
			attribute.String("latchfree.breaker.reason", e.Reason.String())))
	}, nil
}
