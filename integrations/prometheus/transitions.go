package latchprom

import (
	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/prometheus/client_golang/prometheus"
)

// Transitions counts the changes of breakers by their states and reasons. It is a
// collector, and must be made by NewTransitions. The counts go on when a breaker is reset
// or a key leaves its group.
type Transitions struct{ vec *prometheus.CounterVec }

// NewTransitions returns Transitions for the breaker or group of that name, in the label
// breaker.
func NewTransitions(name string) Transitions {
	return Transitions{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "latchfree_breaker_transitions_total",
		Help:        "Changes of breakers, as Config.OnStateChange gets them.",
		ConstLabels: prometheus.Labels{"breaker": utf8(name)},
	}, []string{"from", "to", "reason"})}
}

// Describe sends the description of the counter.
func (t Transitions) Describe(ch chan<- *prometheus.Desc) { t.vec.Describe(ch) }

// Collect sends the counters.
func (t Transitions) Collect(ch chan<- prometheus.Metric) { t.vec.Collect(ch) }

// Count counts e. It is a function for atomicbreaker.Config.OnStateChange.
func (t Transitions) Count(e atomicbreaker.Event) {
	t.vec.WithLabelValues(e.From.String(), e.To.String(), e.Reason.String()).Inc()
}

// CountKey returns a function for atomicbreaker.GroupConfig.OnStateChange that counts the
// changes of all keys together. It panics if t was not made by NewTransitions.
func CountKey[K comparable](t Transitions) func(K, atomicbreaker.Event) {
	if t.vec == nil {
		panic("latchprom: CountKey: zero Transitions")
	}
	return func(_ K, e atomicbreaker.Event) { t.Count(e) }
}
