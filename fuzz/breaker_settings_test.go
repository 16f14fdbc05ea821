package fuzz

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// breakerPolicies is the number of policies that programs choose from. Those
// from longPolicies on have a long history.
const (
	breakerPolicies = 18
	longPolicies    = 13
)

// breakerPolicy returns one of them, which takes n failures or calls, for a
// KOfN among a few more. Windows are whole steps of the clock times fifteen, or
// a power of two less: then the model is exact.
func breakerPolicy(which, n, more, halved byte) model.Policy {
	inARow := model.Rule{Why: ab.ReasonThreshold, N: int(n)}
	kOfN := model.Rule{Why: ab.ReasonThreshold, N: int(n), Last: int(n + more)}
	window := 15 * breakerTick >> halved
	rate := model.Rule{Why: ab.ReasonFailureRate, N: int(n), Ratio: 0.5, Window: window}
	counts := model.Rule{Why: ab.ReasonFailureCount, N: int(n), Window: window}
	slow := model.Rule{Why: ab.ReasonSlowRate, N: int(n), Ratio: 0.5, Slow: breakerTick, Window: window / 2}
	long := model.Rule{Why: ab.ReasonThreshold, N: int(n) + int(more), Last: 33 + int(halved) + int(more)}
	later := model.Rule{Why: ab.ReasonThreshold, N: int(n) + 1}
	return [breakerPolicies]model.Policy{
		{inARow}, {kOfN}, {later, kOfN}, {counts}, {rate}, {slow}, {later, counts}, {rate, kOfN}, {counts, rate},
		{slow, rate}, {later, slow}, {later}, {counts, later, kOfN},
		{long}, {long, kOfN}, {long, later}, {rate, long}, {long, {Why: ab.ReasonThreshold, N: 2, Last: 40}},
	}[which%breakerPolicies]
}

// breakerSettings are what three bytes say.
func breakerSettings(policy, counts, times byte) model.Settings {
	if times >= 240 {
		policy = policy%breakerPolicies + longPolicies
	}
	s := model.Settings{
		Policy: breakerPolicy(policy, 1+counts%3, counts/36%5, times/60%4), Shadow: counts >= 180,
		Probes: 1 + int(counts/3%3), CloseAfter: 1 + int(counts/9%4),
		ProbeRate: [...]float64{0, 0.5, 1, 0, 0.25}[counts/36%5],
		OpenFor:   time.Duration(1+times%3) * breakerTick, ProbeTimeout: time.Duration(1+times/3%4) * breakerTick,
	}
	s.MaxOpen = s.OpenFor * time.Duration(1+times/12%5)
	if s.Constant = times/12%5 == 4; s.Constant {
		s.MaxOpen = 10 * s.OpenFor
	}
	return s
}

// defaultSettings are those of the zero Breaker and the zero Group.
var defaultSettings = model.Settings{
	Policy: model.Policy{{Why: ab.ReasonThreshold, N: 5}}, Probes: 1, CloseAfter: 1,
	OpenFor: time.Minute, MaxOpen: 10 * time.Minute, ProbeTimeout: time.Minute, Constant: true,
}

// forgetTime is after how long a key is forgotten, or 0 for never.
func forgetTime(which byte) time.Duration {
	return [...]time.Duration{0, 8 * breakerTick, 40 * breakerTick, time.Hour}[which%4]
}

// forgetting is that as a GroupConfig says it.
func forgetting(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// tripTime is for how long a Trip is: until Reset, its turn, some steps of the
// clock, or as long as it may.
func tripTime(which byte) time.Duration {
	return [...]time.Duration{-1, 0, breakerTick, 2 * breakerTick, 5 * breakerTick, time.Hour}[which%6]
}
