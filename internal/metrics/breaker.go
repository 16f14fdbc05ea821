package metrics

import (
	"math"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

var (
	stateLabel   = []string{"breaker.state"}
	outcomeLabel = []string{"breaker.outcome"}

	breakerState    = Family{"breaker.state", "1", "1 for the state of the breaker, 0 for the others.", Amount, stateLabel}
	breakerOpen     = Family{"breaker.open", "1", "1 if the breaker rejects calls outright, or would without Config.Shadow.", Amount, nil}
	breakerFailures = Family{"breaker.failures", "{failure}", "Failures that count against the breaker now.", Amount, nil}
	breakerStreak   = Family{"breaker.streak", "{opening}", "How often the breaker has opened since it was last closed, up to 31.", Amount, nil}
	breakerProbes   = Family{"breaker.probes", "{call}", "Probes that have a slot.", Amount, nil}
	breakerRetry    = Family{"breaker.retry_after", "s", "Time until a probe may be made; infinite if only Reset helps.", Gauge, nil}
	breakerOpenings = Family{"breaker.openings", "{opening}", "Times that the breaker opened.", Counter, nil}
	breakerClosings = Family{"breaker.closings", "{closing}", "Times that the breaker was closed again, or reset.", Counter, nil}
	breakerRejected = Family{"breaker.rejected", "{call}", "Calls that were not admitted, or in a shadow would not have been.", Counter, nil}
	breakerLate     = Family{"breaker.late", "{result}", "Results that came too late.", Counter, nil}
	breakerCalls    = Family{"breaker.calls", "{call}", "Calls that were reported, by outcome, with Config.RecordTotals.", Counter, outcomeLabel}

	throttleRequests = Family{"throttle.requests", "{call}", "Calls in the window that asked for admission.", Amount, nil}
	throttleAccepts  = Family{"throttle.accepts", "{call}", "Calls in the window that were reported as accepted.", Amount, nil}
	throttleReject   = Family{"throttle.reject_probability", "1", "Probability with which the next call is rejected.", Gauge, nil}
	budgetAvailable  = Family{"retry_budget.available", "{retry}", "Retries that may be made now.", Amount, nil}

	changeLabels = []string{"breaker.from", "breaker.to", "breaker.reason"}

	// Transitions counts the changes of a breaker, and GroupTransitions those of a group's keys.
	Transitions      = Family{"breaker.transitions", "{transition}", "Changes of the breaker, as Config.OnStateChange gets them.", Counter, changeLabels}
	GroupTransitions = Family{"breaker_group.transitions", "{transition}", "Changes of all keys, as GroupConfig.OnStateChange gets them.", Counter, changeLabels}
)

// Change returns the values of the labels of Transitions and GroupTransitions.
func Change(e atomicbreaker.Event) []string {
	return []string{e.From.String(), e.To.String(), e.Reason.String()}
}

// states are the values of the label state.
var states = []atomicbreaker.State{
	atomicbreaker.Closed, atomicbreaker.Open, atomicbreaker.HalfOpen,
	atomicbreaker.ForcedOpen, atomicbreaker.Disabled, atomicbreaker.Shadow,
}

// Breaker returns the source of b.
func Breaker(b *atomicbreaker.Breaker) *Source {
	return &Source{"breaker", withTotals(b.Stats(), &breakerCalls, &breakerState, &breakerOpen, &breakerFailures, &breakerStreak,
		&breakerProbes, &breakerRetry, &breakerOpenings, &breakerClosings, &breakerRejected, &breakerLate), func(emit Emit) {
		s := b.Snapshot()
		for _, state := range states {
			emit(&breakerState, truth(s.State == state), state.String())
		}
		emit(&breakerOpen, truth(rejects(s.Would)))
		emit(&breakerFailures, float64(s.Failures))
		emit(&breakerStreak, float64(s.Streak))
		emit(&breakerProbes, float64(s.InFlight))
		retry := s.RetryAfter.Seconds()
		if s.RetryAfter == math.MaxInt64 {
			retry = math.Inf(1)
		}
		emit(&breakerRetry, retry)
		counts := b.Stats()
		emit(&breakerOpenings, float64(counts.Opened))
		emit(&breakerClosings, float64(counts.Closed))
		emit(&breakerRejected, float64(counts.Rejected))
		emit(&breakerLate, float64(counts.Late))
		emitTotals(emit, &breakerCalls, counts)
	}}
}

// withTotals adds the family of calls by outcome, if they are counted.
func withTotals(s atomicbreaker.Stats, calls *Family, families ...*Family) []*Family {
	if s.Recorded {
		families = append(families, calls)
	}
	return families
}

// emitTotals emits the calls by outcome, if they are counted.
func emitTotals(emit Emit, calls *Family, s atomicbreaker.Stats) {
	if s.Recorded {
		for o, n := range []uint64{atomicbreaker.Success: s.TotalSuccesses, atomicbreaker.Failure: s.TotalFailures, atomicbreaker.Ignored: s.TotalIgnored} {
			emit(calls, float64(n), atomicbreaker.Outcome(o).String())
		}
	}
}

func rejects(s atomicbreaker.State) bool {
	return s == atomicbreaker.Open || s == atomicbreaker.ForcedOpen
}

// Throttle returns the source of t.
func Throttle(t *throttle.Throttle) *Source {
	return &Source{"throttle", []*Family{&throttleRequests, &throttleAccepts, &throttleReject}, func(emit Emit) {
		s := t.Snapshot()
		emit(&throttleRequests, float64(s.Requests))
		emit(&throttleAccepts, float64(s.Accepts))
		emit(&throttleReject, s.RejectProbability)
	}}
}

// RetryBudget returns the source of b.
func RetryBudget(b *retrybudget.Budget) *Source {
	return &Source{"retry_budget", []*Family{&budgetAvailable}, func(emit Emit) {
		emit(&budgetAvailable, float64(b.Available()))
	}}
}
