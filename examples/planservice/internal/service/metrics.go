package service

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// Metrics returns the metrics of the service, of its structures and of the process.
func (s *Service) Metrics() prometheus.Gatherer { return s.metrics }

// register makes the metrics. Those of the service read the counters that the status
// shows, so that both agree.
func (s *Service) register() error {
	s.metrics = prometheus.NewRegistry()
	c := &s.counters
	all := []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		counter("http_requests_total", "HTTP requests.", &c.requests),
		counter("runs_total", "Plans that were run.", &c.runs),
		callCounter(api.OutcomeSuccess, &c.successes),
		callCounter(api.OutcomeFailure, &c.failures),
		callCounter(api.OutcomeRejected, &c.rejected),
		callCounter(api.OutcomeCancelled, &c.cancelled),
		counter("changes_recorded_total", "Changes that were recorded.", &c.recorded),
		counter("changes_unrecorded_total", "Changes that could not be recorded.", &c.unrecorded),
		counter("changes_written_total", "Changes that were written to databases.", &c.written),
		counter("changesets_started_total", "Changesets that were started.", &c.started),
		counter("changesets_applied_total", "Changesets that were applied.", &c.applied),
		gauge("workers", "Workers that call strategies.", s.pool.Workers),
		gauge("workers_busy", "Workers that call a strategy now.", s.pool.Busy),
		gauge("tasks_queued", "Tasks that wait for a worker.", s.pool.Queued),
	}
	all = append(all, s.audit.Collectors()...)
	all = append(all, s.set.Collectors...)
	for _, collector := range all {
		if err := s.metrics.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

const namespace = "planservice"

func counter(name, help string, n *atomic.Uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, read(n))
}

func callCounter(outcome string, n *atomic.Uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: "strategy_calls_total",
		Help: "Calls of strategies, by outcome.", ConstLabels: prometheus.Labels{"outcome": outcome}}, read(n))
}

func gauge(name, help string, value func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help},
		func() float64 { return float64(value()) })
}

func read(n *atomic.Uint64) func() float64 { return func() float64 { return float64(n.Load()) } }
