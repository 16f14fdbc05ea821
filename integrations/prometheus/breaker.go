package latchprom

import (
	"math"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	breakerState     = family{"latchfree_breaker_state", "1 for the state of the breaker, 0 for the others.", prometheus.GaugeValue, []string{"state"}}
	breakerOpen      = family{"latchfree_breaker_open", "1 if the breaker rejects calls outright, or would without Config.Shadow.", prometheus.GaugeValue, nil}
	breakerFailures  = family{"latchfree_breaker_failures", "Failures that count against the breaker now.", prometheus.GaugeValue, nil}
	breakerStreak    = family{"latchfree_breaker_streak", "How often the breaker has opened since it was last closed, up to 31.", prometheus.GaugeValue, nil}
	breakerProbes    = family{"latchfree_breaker_probes_in_flight", "Probes that have a slot.", prometheus.GaugeValue, nil}
	breakerRetry     = family{"latchfree_breaker_retry_after_seconds", "Time until a probe may be made; +Inf if only Reset helps.", prometheus.GaugeValue, nil}
	breakerOpenings  = family{"latchfree_breaker_opened_total", "Times that the breaker opened.", prometheus.CounterValue, nil}
	breakerClosings  = family{"latchfree_breaker_closed_total", "Times that the breaker was closed again, or reset.", prometheus.CounterValue, nil}
	breakerRejected  = family{"latchfree_breaker_rejected_total", "Calls that were not admitted, or in a shadow would not have been.", prometheus.CounterValue, nil}
	breakerLate      = family{"latchfree_breaker_late_total", "Results that came too late.", prometheus.CounterValue, nil}
	breakerCalls     = family{"latchfree_breaker_calls_total", "Calls that were reported, by outcome, with Config.RecordTotals.", prometheus.CounterValue, []string{"outcome"}}
	throttleRequests = family{"latchfree_throttle_window_requests", "Calls in the window that asked for admission.", prometheus.GaugeValue, nil}
	throttleAccepts  = family{"latchfree_throttle_window_accepts", "Calls in the window that were reported as accepted.", prometheus.GaugeValue, nil}
	throttleReject   = family{"latchfree_throttle_reject_ratio", "Probability with which the next call is rejected.", prometheus.GaugeValue, nil}
	budgetAvailable  = family{"latchfree_retry_budget_available_retries", "Retries that may be made now.", prometheus.GaugeValue, nil}
)

// states are the values of the label state.
var states = []atomicbreaker.State{
	atomicbreaker.Closed, atomicbreaker.Open, atomicbreaker.HalfOpen,
	atomicbreaker.ForcedOpen, atomicbreaker.Disabled, atomicbreaker.Shadow,
}

// withTotals adds the family of calls by outcome, if they are counted.
func withTotals(s atomicbreaker.Stats, calls *family, families ...*family) []*family {
	if s.Recorded {
		families = append(families, calls)
	}
	return families
}

// emitTotals emits the calls by outcome, if they are counted.
func emitTotals(emit emit, calls *family, s atomicbreaker.Stats) {
	if s.Recorded {
		for o, n := range []uint64{atomicbreaker.Success: s.TotalSuccesses, atomicbreaker.Failure: s.TotalFailures, atomicbreaker.Ignored: s.TotalIgnored} {
			emit(calls, float64(n), atomicbreaker.Outcome(o).String())
		}
	}
}

func rejects(s atomicbreaker.State) bool {
	return s == atomicbreaker.Open || s == atomicbreaker.ForcedOpen
}

// seconds returns d, of which the longest is for ever.
func seconds(d time.Duration) float64 {
	if d == math.MaxInt64 {
		return math.Inf(1)
	}
	return d.Seconds()
}

// Breaker returns a collector for b. Its label is breaker. It panics if b is nil.
func Breaker(name string, b *atomicbreaker.Breaker) prometheus.Collector {
	if b == nil {
		panic("latchprom: Breaker: nil breaker")
	}
	return newCollector("breaker", name, func(emit emit) {
		s := b.Snapshot()
		for _, state := range states {
			emit(&breakerState, truth(s.State == state), state.String())
		}
		emit(&breakerOpen, truth(rejects(s.Would)))
		emit(&breakerFailures, float64(s.Failures))
		emit(&breakerStreak, float64(s.Streak))
		emit(&breakerProbes, float64(s.InFlight))
		emit(&breakerRetry, seconds(s.RetryAfter))
		counts := b.Stats()
		emit(&breakerOpenings, float64(counts.Opened))
		emit(&breakerClosings, float64(counts.Closed))
		emit(&breakerRejected, float64(counts.Rejected))
		emit(&breakerLate, float64(counts.Late))
		emitTotals(emit, &breakerCalls, counts)
	}, withTotals(b.Stats(), &breakerCalls, &breakerState, &breakerOpen, &breakerFailures, &breakerStreak, &breakerProbes, &breakerRetry,
		&breakerOpenings, &breakerClosings, &breakerRejected, &breakerLate)...)
}

// Throttle returns a collector for t. Its label is throttle. The counts are those of a
// window, which go up and down. It panics if t is nil.
func Throttle(name string, t *throttle.Throttle) prometheus.Collector {
	if t == nil {
		panic("latchprom: Throttle: nil throttle")
	}
	return newCollector("throttle", name, func(emit emit) {
		s := t.Snapshot()
		emit(&throttleRequests, float64(s.Requests))
		emit(&throttleAccepts, float64(s.Accepts))
		emit(&throttleReject, s.RejectProbability)
	}, &throttleRequests, &throttleAccepts, &throttleReject)
}

// RetryBudget returns a collector for b. Its label is budget. It panics if b is nil.
func RetryBudget(name string, b *retrybudget.Budget) prometheus.Collector {
	if b == nil {
		panic("latchprom: RetryBudget: nil budget")
	}
	return newCollector("budget", name, func(emit emit) {
		emit(&budgetAvailable, float64(b.Available()))
	}, &budgetAvailable)
}
