package latchprom

import (
	"time"

	"github.com/latchfree/latchfree/internal/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// Creations measures how long creations take. It is a collector, and must be made by
// NewCreations.
type Creations struct{ vec *prometheus.HistogramVec }

// NewCreations returns Creations for the cache of that name, in the label cache. Without
// buckets, in seconds, the histogram has prometheus.DefBuckets.
func NewCreations(name string, buckets ...float64) Creations {
	f := metrics.Creations()
	return Creations{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: nameOf(f), Help: f.Help, ConstLabels: instance("cache", name), Buckets: buckets,
	}, labelsOf(f))}
}

// Describe sends the description of the histogram.
func (c Creations) Describe(ch chan<- *prometheus.Desc) { c.vec.Describe(ch) }

// Collect sends the histograms.
func (c Creations) Collect(ch chan<- prometheus.Metric) { c.vec.Collect(ch) }

// Observe adds a creation.
func (c Creations) Observe(took time.Duration, err error) {
	c.vec.WithLabelValues(metrics.Result(err)).Observe(took.Seconds())
}

// OnCreate returns a function for oncecache.Config.OnCreate that observes all creations.
// It panics if c was not made by NewCreations.
func OnCreate[K comparable](c Creations) func(K, time.Duration, error) {
	notNil(c.vec, "OnCreate: zero Creations")
	return func(_ K, took time.Duration, err error) { c.Observe(took, err) }
}
