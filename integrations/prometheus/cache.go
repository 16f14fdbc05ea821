package latchprom

import (
	"errors"
	"time"

	"github.com/latchfree/latchfree/oncecache"
	"github.com/prometheus/client_golang/prometheus"
)

// CacheOptions says which metrics a Cache has besides the usual ones.
type CacheOptions struct {
	// Flights adds the creations that are under way. A scrape then walks all entries of
	// the cache, and locks one bucket at a time.
	Flights bool
}

var (
	cacheEntries  = family{"latchfree_cache_entries", "Values in the cache.", prometheus.GaugeValue, nil}
	cacheWeight   = family{"latchfree_cache_weight", "Sum of the weights of the values, with Config.MaxWeight.", prometheus.GaugeValue, nil}
	cacheCreated  = family{"latchfree_cache_created_total", "Create functions that returned a value.", prometheus.CounterValue, nil}
	cacheFailed   = family{"latchfree_cache_create_failures_total", "Create functions that returned an error.", prometheus.CounterValue, nil}
	cachePanicked = family{"latchfree_cache_create_panics_total", "Create functions that panicked or called runtime.Goexit.", prometheus.CounterValue, nil}
	cacheTimedOut = family{"latchfree_cache_create_timeouts_total", "Creations that took longer than Config.CreateTimeout; their functions count elsewhere too when they end.", prometheus.CounterValue, nil}
	cacheRemoved  = family{"latchfree_cache_removals_total", "Values and kept errors that the cache removed by itself.", prometheus.CounterValue, []string{"reason"}}
	cacheClosed   = family{"latchfree_cache_value_closes_total", "Calls of Config.Close that have ended.", prometheus.CounterValue, nil}
	cacheHits     = family{"latchfree_cache_hits_total", "Look-ups that found a value.", prometheus.CounterValue, nil}
	cacheMisses   = family{"latchfree_cache_misses_total", "Look-ups that did not find a value.", prometheus.CounterValue, nil}
	cacheJoined   = family{"latchfree_cache_joined_total", "Calls that waited for the creation of another call.", prometheus.CounterValue, nil}
	cacheFlights  = family{"latchfree_cache_creations_in_flight", "Creations that are under way.", prometheus.GaugeValue, nil}
	cacheWaiting  = family{"latchfree_cache_waiting_calls", "Goroutines that wait for a creation and do not run its function.", prometheus.GaugeValue, nil}
	cacheOldest   = family{"latchfree_cache_oldest_creation_seconds", "How long ago the oldest creation under way began; 0 without one.", prometheus.GaugeValue, nil}
)

// Cache returns a collector for c. Its label is cache. It has metrics of look-ups if c counts
// them, which is Config.RecordStats. It panics if c is nil.
func Cache[K comparable, V any](name string, c *oncecache.Cache[K, V], o CacheOptions) prometheus.Collector {
	if c == nil {
		panic("latchprom: Cache: nil cache")
	}
	families := []*family{&cacheEntries, &cacheWeight, &cacheCreated, &cacheFailed, &cachePanicked, &cacheTimedOut, &cacheRemoved, &cacheClosed}
	recorded := c.Stats().Recorded
	if recorded {
		families = append(families, &cacheHits, &cacheMisses, &cacheJoined)
	}
	if o.Flights {
		families = append(families, &cacheFlights, &cacheWaiting, &cacheOldest)
	}
	return newCollector("cache", name, func(emit emit) {
		s := c.Stats()
		emit(&cacheEntries, float64(c.Len()))
		emit(&cacheWeight, float64(s.Weight))
		emit(&cacheCreated, float64(s.Created))
		emit(&cacheFailed, float64(s.Failed))
		emit(&cachePanicked, float64(s.Panicked))
		emit(&cacheTimedOut, float64(s.TimedOut))
		emit(&cacheRemoved, float64(s.Evicted), oncecache.ReasonEvicted.String())
		emit(&cacheRemoved, float64(s.Idle), oncecache.ReasonIdle.String())
		emit(&cacheRemoved, float64(s.Expired), oncecache.ReasonExpired.String())
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

// Creations measures how long creations take. It is a collector, and must be made by
// NewCreations.
type Creations struct{ vec *prometheus.HistogramVec }

// NewCreations returns Creations for the cache of that name, in the label cache. Without
// buckets, in seconds, the histogram has prometheus.DefBuckets.
func NewCreations(name string, buckets ...float64) Creations {
	return Creations{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:        "latchfree_cache_create_duration_seconds",
		Help:        "How long creations took, by the result of the function: ok, error or panic.",
		ConstLabels: prometheus.Labels{"cache": utf8(name)},
		Buckets:     buckets,
	}, []string{"result"})}
}

// Describe sends the description of the histogram.
func (c Creations) Describe(ch chan<- *prometheus.Desc) { c.vec.Describe(ch) }

// Collect sends the histograms.
func (c Creations) Collect(ch chan<- prometheus.Metric) { c.vec.Collect(ch) }

// Observe adds a creation.
func (c Creations) Observe(took time.Duration, err error) {
	c.vec.WithLabelValues(result(err)).Observe(took.Seconds())
}

// OnCreate returns a function for oncecache.Config.OnCreate that observes all creations.
// It panics if c was not made by NewCreations.
func OnCreate[K comparable](c Creations) func(K, time.Duration, error) {
	if c.vec == nil {
		panic("latchprom: OnCreate: zero Creations")
	}
	return func(_ K, took time.Duration, err error) { c.Observe(took, err) }
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
