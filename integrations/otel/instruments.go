package latchotel

import (
	"context"
	"fmt"
	"math"

	"github.com/latchfree/latchfree/internal/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// prefix begins all names and attributes.
const prefix = "latchfree."

// register makes the instruments of an instance, and observes them with what its source
// has. The instance's name is an attribute.
func register(meter metric.Meter, name string, source *metrics.Source) (metric.Registration, error) {
	instruments := make(map[*metrics.Family]metric.Observable, len(source.Families))
	all := make([]metric.Observable, 0, len(source.Families))
	for _, f := range source.Families {
		instrument, err := instrument(meter, f)
		if err != nil {
			return nil, fmt.Errorf("latchotel: %s: %w", f.Name, err)
		}
		instruments[f] = instrument
		all = append(all, instrument)
	}
	own := instance(source.Type, name)
	registration, err := meter.RegisterCallback(func(ctx context.Context, observer metric.Observer) error {
		samples, err := source.Samples(ctx)
		if err != nil {
			return fmt.Errorf("latchotel: %w", err)
		}
		for _, s := range samples {
			attrs := metric.WithAttributes(append(attributes(s.Family, s.Labels), own)...)
			switch instrument := instruments[s.Family].(type) {
			case metric.Int64Observable:
				observer.ObserveInt64(instrument, int64(s.Value), attrs)
			case metric.Float64Observable:
				if !math.IsInf(s.Value, 0) {
					observer.ObserveFloat64(instrument, s.Value, attrs)
				}
			}
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("latchotel: %w", err)
	}
	return registration, nil
}

// instrument returns the instrument of a family.
func instrument(meter metric.Meter, f *metrics.Family) (metric.Observable, error) {
	unit, help := metric.WithUnit(f.Unit), metric.WithDescription(f.Help)
	switch f.Kind {
	case metrics.Counter:
		return meter.Int64ObservableCounter(prefix+f.Name, unit, help)
	case metrics.Amount:
		return meter.Int64ObservableUpDownCounter(prefix+f.Name, unit, help)
	default:
		return meter.Float64ObservableGauge(prefix+f.Name, unit, help)
	}
}

// instance returns the attribute of an instance.
func instance(of, name string) attribute.KeyValue {
	return attribute.String(prefix+of+".name", metrics.Text(name))
}

// attributes returns those of a family with the values of its labels.
func attributes(f *metrics.Family, labels []string) (attrs []attribute.KeyValue) {
	for i, value := range labels {
		attrs = append(attrs, attribute.String(prefix+f.Labels[i], value))
	}
	return attrs
}

// needMeter panics if a function is called with a nil meter.
func needMeter(meter metric.Meter, function string) {
	if meter == nil {
		panic("latchotel: " + function + ": nil meter")
	}
}

// notNil returns p, or panics with a text that ends with what.
func notNil[T any](p *T, what string) *T {
	if p == nil {
		panic("latchotel: " + what)
	}
	return p
}
