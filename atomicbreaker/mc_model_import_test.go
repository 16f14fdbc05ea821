//go:build modelcheck

package atomicbreaker_test

import (
	"cmp"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

func init() {
	atomicbreaker.NewModel = func(c atomicbreaker.Config) atomicbreaker.Model {
		return &modelled{model.Breaker{Settings: modelSettings(c), Keyed: true, Forget: time.Hour}}
	}
}

// modelSettings returns those that a model has for c, as New would set them.
func modelSettings(c atomicbreaker.Config) model.Settings {
	s := model.Settings{
		Probes: max(c.Probes, 1), CloseAfter: max(c.CloseAfter, 1), ProbeRate: c.ProbeFailureRate,
		OpenFor: cmp.Or(c.OpenTimeout, time.Minute), ProbeTimeout: 10 * time.Second, Constant: true, Shadow: c.Shadow, Totals: c.RecordTotals,
	}
	s.MaxOpen = 10 * s.OpenFor
	for _, r := range atomicbreaker.ModelRules(c.Policy) {
		s.Policy = append(s.Policy, model.Rule{Why: atomicbreaker.ReasonThreshold, N: r.K, Last: r.N})
	}
	return s
}

// modelled is a model as a Model.
type modelled struct{ model.Breaker }

func (m *modelled) Allow() (any, error) {
	p, err := m.Breaker.Allow()
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (m *modelled) Done(permit any, o atomicbreaker.Outcome) atomicbreaker.Verdict {
	if p, ok := permit.(model.Permit); ok {
		return m.Breaker.Done(p, o)
	}
	return atomicbreaker.Late
}

func (m *modelled) DoneTrip(permit any, d time.Duration) atomicbreaker.Verdict {
	if p, ok := permit.(model.Permit); ok {
		return m.Breaker.DoneTrip(p, d)
	}
	return atomicbreaker.Late
}

func (m *modelled) Snapshot() atomicbreaker.Snapshot {
	s := m.Breaker.Snapshot()
	s.Generation = m.Stays()
	return s
}

func (m *modelled) Notified() []atomicbreaker.Event { return m.Events }

func (m *modelled) Set(c atomicbreaker.Config) { m.Update(modelSettings(c)) }

func (m *modelled) Pass(d time.Duration) { m.Now += d }
