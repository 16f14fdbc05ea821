package metrics

import (
	"math"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// Transitions counts the changes of a breaker.
func Transitions() *Family {
	return transitions("breaker.transitions", "Changes of the breaker, as Config.OnStateChange gets them.")
}

// GroupTransitions counts the changes of a group's keys.
func GroupTransitions() *Family {
	return transitions("breaker_group.transitions", "Changes of all keys, as GroupConfig.OnStateChange gets them.")
}

func transitions(name, help string) *Family {
	return &Family{name, "{transition}", help, Counter, []string{"breaker.from", "breaker.to", "breaker.reason"}}
}

// Change returns the values of the labels of Transitions and GroupTransitions.
func Change(e atomicbreaker.Event) []string {
	return []string{e.From.String(), e.To.String(), e.Reason.String()}
}

// states returns the values of the label state.
func states() []atomicbreaker.State {
	return []atomicbreaker.State{
		atomicbreaker.Closed, atomicbreaker.Open, atomicbreaker.HalfOpen,
		atomicbreaker.ForcedOpen, atomicbreaker.Disabled, atomicbreaker.Shadow,
	}
}

// Breaker returns the source of b.
func Breaker(b *atomicbreaker.Breaker) *Source {
	s := &Source{Type: "breaker"}
	state := s.family("breaker.state", "1", "1 for the state of the breaker, 0 for the others.", Amount, "breaker.state")
	open := s.family("breaker.open", "1", "1 if the breaker rejects calls outright, or would without Config.Shadow.", Amount)
	failures := s.family("breaker.failures", "{failure}", "Failures that count against the breaker now.", Amount)
	streak := s.family("breaker.streak", "{opening}", "How often the breaker has opened since it was last closed, up to 31.", Amount)
	probes := s.family("breaker.probes", "{call}", "Probes that have a slot.", Amount)
	retry := s.family("breaker.retry_after", "s", "Time until a probe may be made; infinite if only Reset helps.", Gauge)
	counts := s.counts(b.Stats(), "the breaker", "Calls")
	s.Read = func(emit Emit) {
		now := b.Snapshot()
		for _, of := range states() {
			emit(state, truth(now.State == of), of.String())
		}
		emit(open, truth(rejects(now.Would)))
		emit(failures, float64(now.Failures))
		emit(streak, float64(now.Streak))
		emit(probes, float64(now.InFlight))
		after := now.RetryAfter.Seconds()
		if now.RetryAfter == math.MaxInt64 {
			after = math.Inf(1)
		}
		emit(retry, after)
		counts(emit, b.Stats())
	}
	return s
}

// counts adds the families of what is counted of breakers, where who is what opens, and returns what emits them.
func (s *Source) counts(now atomicbreaker.Stats, who, calls string) func(Emit, atomicbreaker.Stats) {
	openings := s.family(s.Type+".openings", "{opening}", "Times that "+who+" opened.", Counter)
	closings := s.family(s.Type+".closings", "{closing}", "Times that "+who+" was closed again, or reset.", Counter)
	rejected := s.family(s.Type+".rejected", "{call}", "Calls that were not admitted, or in a shadow would not have been.", Counter)
	late := s.family(s.Type+".late", "{result}", "Results that came too late.", Counter)
	totals := func(Emit, atomicbreaker.Stats) {}
	if now.Recorded {
		outcomes := s.family(s.Type+".calls", "{call}", calls+" that were reported, by outcome, with Config.RecordTotals.", Counter, "breaker.outcome")
		totals = func(emit Emit, now atomicbreaker.Stats) {
			for o, n := range []uint64{atomicbreaker.Success: now.TotalSuccesses, atomicbreaker.Failure: now.TotalFailures, atomicbreaker.Ignored: now.TotalIgnored} {
				emit(outcomes, float64(n), atomicbreaker.Outcome(o).String())
			}
		}
	}
	return func(emit Emit, now atomicbreaker.Stats) {
		emit(openings, float64(now.Opened))
		emit(closings, float64(now.Closed))
		emit(rejected, float64(now.Rejected))
		emit(late, float64(now.Late))
		totals(emit, now)
	}
}

func rejects(s atomicbreaker.State) bool {
	return s == atomicbreaker.Open || s == atomicbreaker.ForcedOpen
}

// Throttle returns the source of t.
func Throttle(t *throttle.Throttle) *Source {
	s := &Source{Type: "throttle"}
	requests := s.family("throttle.requests", "{call}", "Calls in the window that asked for admission.", Amount)
	accepts := s.family("throttle.accepts", "{call}", "Calls in the window that were reported as accepted.", Amount)
	reject := s.family("throttle.reject_probability", "1", "Probability with which the next call is rejected.", Gauge)
	s.Read = func(emit Emit) {
		window := t.Snapshot()
		emit(requests, float64(window.Requests))
		emit(accepts, float64(window.Accepts))
		emit(reject, window.RejectProbability)
	}
	return s
}

// RetryBudget returns the source of b.
func RetryBudget(b *retrybudget.Budget) *Source {
	s := &Source{Type: "retry_budget"}
	available := s.family("retry_budget.available", "{retry}", "Retries that may be made now.", Amount)
	s.Read = func(emit Emit) {
		emit(available, float64(b.Available()))
	}
	return s
}
