package latchotel

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A kind is the type of an instrument.
type kind int

const (
	counter kind = iota // int64, never goes down
	amount              // int64, an UpDownCounter: sums make sense
	gauge               // float64
)

// A family is one metric that a type has.
type family struct {
	name, unit, help string
	kind             kind
}

// emit adds an observation.
type emit func(f *family, value float64, attrs ...attribute.KeyValue)

type observation struct {
	family *family
	value  float64
	attrs  metric.MeasurementOption
}

// register makes the instruments of an instance and observes them with what read emits.
// The attribute label has the instance's name.
func register(meter metric.Meter, label, name string, read func(emit), families ...*family) (metric.Registration, error) {
	instruments := make(map[*family]metric.Observable, len(families))
	all := make([]metric.Observable, 0, len(families))
	for _, f := range families {
		instrument, err := f.instrument(meter)
		if err != nil {
			return nil, fmt.Errorf("latchotel: %s: %w", f.name, err)
		}
		instruments[f] = instrument
		all = append(all, instrument)
	}
	instance := attribute.String(label, utf8(name))
	callback := func(ctx context.Context, observer metric.Observer) error {
		observations, err := observe(ctx, instance, read)
		for _, o := range observations {
			switch instrument := instruments[o.family].(type) {
			case metric.Int64Observable:
				observer.ObserveInt64(instrument, int64(o.value), o.attrs)
			case metric.Float64Observable:
				observer.ObserveFloat64(instrument, o.value, o.attrs)
			}
		}
		return err
	}
	registration, err := meter.RegisterCallback(callback, all...)
	if err != nil {
		return nil, fmt.Errorf("latchotel: %w", err)
	}
	return registration, nil
}

func (f *family) instrument(meter metric.Meter) (metric.Observable, error) {
	switch f.kind {
	case counter:
		return meter.Int64ObservableCounter(f.name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
	case amount:
		return meter.Int64ObservableUpDownCounter(f.name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
	default:
		return meter.Float64ObservableGauge(f.name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
	}
}

// observe returns all that read emits, or an error alone. Functions of users, such as
// GroupOptions.Label, run on a goroutine of their own: one that calls runtime.Goexit would
// take the reader's goroutine with it, and one that blocks must not hold it beyond ctx.
func observe(ctx context.Context, instance attribute.KeyValue, read func(emit)) ([]observation, error) {
	type result struct {
		observations []observation
		err          error
	}
	results := make(chan result, 1)
	go func() {
		r := result{err: errors.New("latchotel: a function called runtime.Goexit")}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("latchotel: a function panicked: %v\n%s", p, debug.Stack())
			}
			if r.err != nil {
				r.observations = nil
			}
			results <- r
		}()
		read(func(f *family, value float64, attrs ...attribute.KeyValue) {
			set := metric.WithAttributes(append(attrs, instance)...)
			r.observations = append(r.observations, observation{f, value, set})
		})
		r.err = nil
	}()
	select {
	case r := <-results:
		return r.observations, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// utf8 returns text with all that is not UTF-8 replaced, as attributes must be.
func utf8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
