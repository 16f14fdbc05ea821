package clustered

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/cluster/breaker"
)

type collector = prometheus.Collector

const namespace = "planservice"

func gauge(name, help string, labels prometheus.Labels, value func() float64) collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels}, value)
}

func (m mirrored[V]) collectors() []collector {
	labels := prometheus.Labels{"bucket": m.bucket}
	return []collector{
		gauge("mirror_entries", "Entries of the mirror of a bucket.", labels, func() float64 { return float64(m.r.Len()) }),
		gauge("mirror_lag_seconds", "For how long a mirror may have missed writes.", labels, func() float64 { return m.r.Lag().Proven.Seconds() }),
	}
}

func hints(g *breaker.Group[string]) []collector {
	return []collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: "breaker_hints_applied_total",
			Help: "Hints of other replicas that have changed a breaker."}, func() float64 { return float64(g.Hints().Applied) }),
	}
}
