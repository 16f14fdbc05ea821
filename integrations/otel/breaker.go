package latchotel

import (
	"math"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

var (
	breakerState     = family{"latchfree.breaker.state", "1", "1 for the state of the breaker, 0 for the others.", amount}
	breakerOpen      = family{"latchfree.breaker.open", "1", "1 if the breaker rejects calls outright, or would without Config.Shadow.", amount}
	breakerFailures  = family{"latchfree.breaker.failures", "{failure}", "Failures that count against the breaker now.", amount}
	breakerStreak    = family{"latchfree.breaker.streak", "{opening}", "How often the breaker has opened since it was last closed, up to 31.", amount}
	breakerProbes    = family{"latchfree.breaker.probes", "{call}", "Probes that have a slot.", amount}
	breakerRetry     = family{"latchfree.breaker.retry_after", "s", "Time until a probe may be made; absent if only Reset helps.", gauge}
	breakerOpenings  = family{"latchfree.breaker.openings", "{opening}", "Times that the breaker opened.", counter}
	breakerClosings  = family{"latchfree.breaker.closings", "{closing}", "Times that the breaker was closed again, or reset.", counter}
	breakerRejected  = family{"latchfree.breaker.rejected", "{call}", "Calls that were not admitted, or in a shadow would not have been.", counter}
	breakerLate      = family{"latchfree.breaker.late", "{result}", "Results that came too late.", counter}
	breakerCalls     = family{"latchfree.breaker.calls", "{call}", "Calls that were reported, by outcome, with Config.RecordTotals.", counter}
	throttleRequests = family{"latchfree.throttle.requests", "{call}", "Calls in the window that asked for admission.", amount}
	throttleAccepts  = family{"latchfree.throttle.accepts", "{call}", "Calls in the window that were reported as accepted.", amount}
	throttleReject   = family{"latchfree.throttle.reject_probability", "1", "Probability with which the next call is rejected.", gauge}
	budgetAvailable  = family{"latchfree.retry_budget.available", "{retry}", "Retries that may be made now.", amount}
)

// states are the values of the attribute state.
var states = []atomicbreaker.State{
	atomicbreaker.Closed, atomicbreaker.Open, atomicbreaker.HalfOpen,
	atomicbreaker.ForcedOpen, atomicbreaker.Disabled, atomicbreaker.Shadow,
}

func stateOf(s atomicbreaker.State) attribute.KeyValue {
	return attribute.String("latchfree.breaker.state", s.String())
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
			emit(calls, float64(n), attribute.String("latchfree.breaker.outcome", atomicbreaker.Outcome(o).String()))
		}
	}
}

func rejects(s atomicbreaker.State) bool {
	return s == atomicbreaker.Open || s == atomicbreaker.ForcedOpen
}

// Breaker registers the metrics of b. It panics if meter or b is nil.
func Breaker(meter metric.Meter, name string, b *atomicbreaker.Breaker) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: Breaker: nil meter")
	}
	if b == nil {
		panic("latchotel: Breaker: nil breaker")
	}
	return register(meter, "latchfree.breaker.name", name, func(emit emit) {
		s := b.Snapshot()
		for _, state := range states {
			emit(&breakerState, truth(s.State == state), stateOf(state))
		}
		emit(&breakerOpen, truth(rejects(s.Would)))
		emit(&breakerFailures, float64(s.Failures))
		emit(&breakerStreak, float64(s.Streak))
		emit(&breakerProbes, float64(s.InFlight))
		if s.RetryAfter != math.MaxInt64 {
			emit(&breakerRetry, s.RetryAfter.Seconds())
		}
		counts := b.Stats()
		emit(&breakerOpenings, float64(counts.Opened))
		emit(&breakerClosings, float64(counts.Closed))
		emit(&breakerRejected, float64(counts.Rejected))
		emit(&breakerLate, float64(counts.Late))
		emitTotals(emit, &breakerCalls, counts)
	}, withTotals(b.Stats(), &breakerCalls, &breakerState, &breakerOpen, &breakerFailures, &breakerStreak, &breakerProbes, &breakerRetry,
		&breakerOpenings, &breakerClosings, &breakerRejected, &breakerLate)...)
}

// Throttle registers the metrics of t. It panics if meter or t is nil.
func Throttle(meter metric.Meter, name string, t *throttle.Throttle) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: Throttle: nil meter")
	}
	if t == nil {
		panic("latchotel: Throttle: nil throttle")
	}
	return register(meter, "latchfree.throttle.name", name, func(emit emit) {
		s := t.Snapshot()
		emit(&throttleRequests, float64(s.Requests))
		emit(&throttleAccepts, float64(s.Accepts))
		emit(&throttleReject, s.RejectProbability)
	}, &throttleRequests, &throttleAccepts, &throttleReject)
}

// RetryBudget registers the metrics of b. It panics if meter or b is nil.
func RetryBudget(meter metric.Meter, name string, b *retrybudget.Budget) (metric.Registration, error) {
	if meter == nil {
		panic("latchotel: RetryBudget: nil meter")
	}
	if b == nil {
		panic("latchotel: RetryBudget: nil budget")
	}
	return register(meter, "latchfree.retry_budget.name", name, func(emit emit) {
		emit(&budgetAvailable, float64(b.Available()))
	}, &budgetAvailable)
}
