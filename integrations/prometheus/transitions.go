package latchprom

import (
	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// Transitions counts the changes of a breaker by their states and reasons. It is a
// collector, and must be made by NewTransitions. The counts go on when the breaker is reset.
type Transitions struct{ vec *prometheus.CounterVec }

// NewTransitions returns Transitions for the breaker of that name, in the label breaker.
func NewTransitions(name string) Transitions {
	return Transitions{transitions(metrics.Transitions(), "breaker", name)}
}

// Describe sends the description of the counter.
func (t Transitions) Describe(ch chan<- *prometheus.Desc) { t.vec.Describe(ch) }

// Collect sends the counters.
func (t Transitions) Collect(ch chan<- prometheus.Metric) { t.vec.Collect(ch) }

// Count counts e. It is a function for atomicbreaker.Config.OnStateChange.
func (t Transitions) Count(e atomicbreaker.Event) { count(t.vec, e) }

// GroupTransitions counts the changes of all keys of a group together, by their states and
// reasons. It is a collector, and must be made by NewGroupTransitions. The counts go on when
// a key leaves its group.
type GroupTransitions struct{ vec *prometheus.CounterVec }

// NewGroupTransitions returns GroupTransitions for the group of that name, in the label
// group.
func NewGroupTransitions(name string) GroupTransitions {
	return GroupTransitions{transitions(metrics.GroupTransitions(), "breaker_group", name)}
}

// Describe sends the description of the counter.
func (t GroupTransitions) Describe(ch chan<- *prometheus.Desc) { t.vec.Describe(ch) }

// Collect sends the counters.
func (t GroupTransitions) Collect(ch chan<- prometheus.Metric) { t.vec.Collect(ch) }

// CountKey returns a function for atomicbreaker.GroupConfig.OnStateChange that counts in t.
// It panics if t was not made by NewGroupTransitions.
func CountKey[K comparable](t GroupTransitions) func(K, atomicbreaker.Event) {
	notNil(t.vec, "CountKey: zero GroupTransitions")
	return func(_ K, e atomicbreaker.Event) { count(t.vec, e) }
}

func transitions(f *metrics.Family, of, name string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: nameOf(f), Help: f.Help, ConstLabels: instance(of, name),
	}, labelsOf(f))
}

func count(vec *prometheus.CounterVec, e atomicbreaker.Event) {
	vec.WithLabelValues(metrics.Change(e)...).Inc()
}
