package adapt

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// Permit is what is used of an ab.Permit and an ab.GroupPermit.
type Permit interface {
	Success() ab.Verdict
	Failure() ab.Verdict
	Cancel() ab.Verdict
	Done(error) ab.Verdict
	Report(ab.Outcome) ab.Verdict
	Trip(time.Duration) ab.Verdict
}

// Tick is a step of the clock of breakers, in which nothing is rounded.
const Tick = 128 * time.Millisecond

// BreakerPolicies is the number of policies that programs choose from. Those
// from LongPolicies on have a long history.
const (
	BreakerPolicies = 18
	LongPolicies    = 13
)

// BreakerPolicy returns one of them, which takes n failures or calls, for a
// KOfN among a few more. Windows are whole steps of the clock times fifteen, or
// a power of two less: then the model is exact.
func BreakerPolicy(which, n, more, halved byte) model.Policy {
	inARow := model.Rule{Why: ab.ReasonThreshold, N: int(n)}
	kOfN := model.Rule{Why: ab.ReasonThreshold, N: int(n), Last: int(n + more)}
	window := 15 * Tick >> halved
	rate := model.Rule{Why: ab.ReasonFailureRate, N: int(n), Ratio: 0.5, Window: window}
	counts := model.Rule{Why: ab.ReasonFailureCount, N: int(n), Window: window}
	slow := model.Rule{Why: ab.ReasonSlowRate, N: int(n), Ratio: 0.5, Slow: Tick, Window: window / 2}
	long := model.Rule{Why: ab.ReasonThreshold, N: int(n) + int(more), Last: 33 + int(halved) + int(more)}
	later := model.Rule{Why: ab.ReasonThreshold, N: int(n) + 1}
	return [BreakerPolicies]model.Policy{
		{inARow}, {kOfN}, {later, kOfN}, {counts}, {rate}, {slow}, {later, counts}, {rate, kOfN}, {counts, rate},
		{slow, rate}, {later, slow}, {later}, {counts, later, kOfN},
		{long}, {long, kOfN}, {long, later}, {rate, long}, {long, {Why: ab.ReasonThreshold, N: 2, Last: 40}},
	}[which%BreakerPolicies]
}

// TripTime is for how long a Trip is: until Reset, its turn, some steps of the
// clock, or as long as it may.
func TripTime(which byte) time.Duration {
	return [...]time.Duration{-1, 0, Tick, 2 * Tick, 5 * Tick, time.Hour}[which%6]
}
