package sequences

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// breakerSettings are what three bytes say.
func breakerSettings(policy, counts, times byte) model.Settings {
	if times >= 240 {
		policy = policy%adapt.BreakerPolicies + adapt.LongPolicies
	}
	s := model.Settings{
		Policy: adapt.BreakerPolicy(policy, 1+counts%3, counts/36%5, times/60%4), Shadow: counts >= 180,
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
