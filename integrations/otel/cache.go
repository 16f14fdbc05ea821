package latchotel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/oncecache"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// CacheOptions says which metrics a Cache has besides the usual ones.
type CacheOptions struct {
	// Flights adds the creations that are under way. A collection then walks all entries
	// of the cache, and locks one bucket at a time.
	Flights bool
}

var (
	cacheEntries  = family{"latchfree.cache.entries", "{entry}", "Values in the cache.", amount}
	cacheWeight   = family{"latchfree.cache.weight", "1", "Sum of the weights of the values, with Config.MaxWeight.", amount}
	cacheCreated  = family{"latchfree.cache.created", "{creation}", "Create functions that returned a value.", counter}
	cacheFailed   = family{"latchfree.cache.create.failures", "{creation}", "Create functions that returned an error.", counter}
	cachePanicked = family{"latchfree.cache.create.panics", "{creation}", "Create functions that panicked or called runtime.Goexit.", counter}
	cacheTimedOut = family{"latchfree.cache.create.timeouts", "{creation}", "Creations that took longer than Config.CreateTimeout; their functions count elsewhere too when they end.", counter}
	cacheRemoved  = family{"latchfree.cache.removals", "{entry}", "Values and kept errors that the cache removed by itself.", counter}
	cacheClosed   = family{"latchfree.cache.value_closes", "{value}", "Calls of Config.Close that have ended.", counter}
	cacheHits     = family{"latchfree.cache.hits", "{call}", "Look-ups that found a value.", counter}
	cacheMisses   = family{"latchfree.cache.misses", "{call}", "Look-ups that did not find a value.", counter}
	cacheJoined   = family{"latchfree.cache.joined", "{call}", "Calls that waited for the creation of another call.", counter}
	cacheFlights  = family{"latchfree.cache.create.in_flight", "{creation}", "Creations that are under way.", amount}
	cacheWaiting  = family{"latchfree.cache.create.waiting", "{call}", "Goroutines that wait for a creation and do not run its function.", amount}
	cacheOldest   = family{"latchfree.cache.create.oldest", "s", "How long ago the oldest creation under way began; 0 without one.", gauge}
)

// Cache registers the metrics of c: those of look-ups if c counts them, which is
// Config.RecordStats. It panics if meter or c is nil.
func Cache[K comparable, V any](meter metric.Meter, name string, c *oncecache.Cache[K, V], o CacheOptions) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: Cache: nil meter")
	}
	if c == nil {
		panic("latchotel: Cache: nil cache")
	}
	families := []*family{&cacheEntries, &cacheWeight, &cacheCreated, &cacheFailed, &cachePanicked, &cacheTimedOut, &cacheRemoved, &cacheClosed}
	recorded := c.Stats().Recorded
	if recorded {
		families = append(families, &cacheHits, &cacheMisses, &cacheJoined)
	}
	if o.Flights {
		families = append(families, &cacheFlights, &cacheWaiting, &cacheOldest)
	}
	reason := func(r oncecache.Reason) attribute.KeyValue {
		return attribute.String("latchfree.cache.reason", r.String())
	}
	return register(meter, "latchfree.cache.name", name, func(emit emit) {
		s := c.Stats()
		emit(&cacheEntries, float64(c.Len()))
		emit(&cacheWeight, float64(s.Weight))
		emit(&cacheCreated, float64(s.Created))
		emit(&cacheFailed, float64(s.Failed))
		emit(&cachePanicked, float64(s.Panicked))
		emit(&cacheTimedOut, float64(s.TimedOut))
		emit(&cacheRemoved, float64(s.Evicted), reason(oncecache.ReasonEvicted))
		emit(&cacheRemoved, float64(s.Idle), reason(oncecache.ReasonIdle))
		emit(&cacheRemoved, float64(s.Expired), reason(oncecache.ReasonExpired))
		emit(&cacheClosed, float64(s.Closed))
		if recorded {
			emit(&cacheHits, float64(s.Hits))
			emit(&cacheMisses, float64(s.Misses))
			emit(&cacheJoined, float64(s.Joined))
		}
		if o.Flights {
			flights, waiting, oldest := 0, 0, time.Duration(0)
			for f := range c.InFlight() {
				flights++
				waiting += f.Waiting
				oldest = max(oldest, time.Since(f.Since))
			}
			emit(&cacheFlights, float64(flights))
			emit(&cacheWaiting, float64(waiting))
			emit(&cacheOldest, oldest.Seconds())
		}
	}, families...)
}

// Creations returns a function for oncecache.Config.OnCreate that measures how long
// creations take, in a histogram. It panics if meter is nil.
func Creations[K comparable](meter metric.Meter, name string) (func(K, time.Duration, error), error) {
	if meter == nil {
		panic("latchotel: Creations: nil meter")
	}
	histogram, err := meter.Float64Histogram("latchfree.cache.create.duration", metric.WithUnit("s"),
		metric.WithDescription("How long creations took, by the result of the function: ok, error or panic."))
	if err != nil {
		return nil, fmt.Errorf("latchotel: %w", err)
	}
	options := make(map[string]metric.MeasurementOption)
	for _, result := range []string{"ok", "error", "panic"} {
		options[result] = metric.WithAttributeSet(attribute.NewSet(
			attribute.String("latchfree.cache.name", utf8(name)), attribute.String("latchfree.cache.result", result)))
	}
	return func(_ K, took time.Duration, err error) {
		histogram.Record(context.Background(), took.Seconds(), options[result(err)])
	}, nil
}

// result returns how a create function has ended. OnCreate gets ErrNotModified only if there is
// no value that could stay, which is an error.
func result(err error) string {
	var p *oncecache.PanicError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &p) || errors.Is(err, oncecache.ErrGoexit):
		return "panic"
	}
	return "error"
}
