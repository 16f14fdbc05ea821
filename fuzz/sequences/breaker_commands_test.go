package sequences

import (
	"slices"

	"github.com/stretchr/testify/require"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/adapt"
	model "github.com/latchfree/latchfree/internal/tools/model/atomicbreaker"
)

// What is done to a breaker by hand, and results that say for how long.

// command is one of Trip, ForceOpen and Disable.
func (m *breakerMachine) command(op byte, key int, arg byte) {
	name, spec, d := breakerNames[key], m.models[key], adapt.TripTime(arg)
	m.survive(func() {
		switch {
		case op == 12 && m.breaker != nil:
			m.breaker.Trip(d)
		case op == 12:
			m.group.Trip(name, d)
		case op == 13 && m.breaker != nil:
			m.breaker.ForceOpen()
		case op == 13:
			m.group.ForceOpen(name)
		case m.breaker != nil:
			m.breaker.Disable()
		default:
			m.group.Disable(name)
		}
	})
	switch op {
	case 12:
		spec.Trip(d)
	case 13:
		spec.ForceOpen()
	default:
		spec.Disable()
	}
	m.heard(key)
}

// doneTrip ends one of the calls that are in flight by Permit.Trip.
func (m *breakerMachine) doneTrip(arg byte) {
	if h, ok := m.take(arg); ok {
		d := adapt.TripTime(arg)
		m.verdict(func() ab.Verdict { return h.permit.Trip(d) }, m.models[h.key].DoneTrip(h.spec, d), "verdict of Trip")
		m.heard(h.key)
	}
}

// update gives the breaker or the group other settings, of which some are wrong, and some
// take the listener away or bring it back. A group gets or loses PerKey, too. It keeps its
// windows: a key that has lost them may be stored for a while or not.
func (m *breakerMachine) update(how, arg byte) {
	s := breakerSettings(arg, arg/adapt.BreakerPolicies+how*19, m.times+how)
	if was := m.models[0].Policy; m.group != nil && (windowed(s.Policy) || windowed(was)) {
		s.Policy = was
	}
	s.Totals = m.models[0].Totals
	c, wrong := s.Config(), how == 12 || how == 14 || how == 13 && m.ears.mood == deaf
	if wrong {
		mood, silent, perKey := m.ears.mood, m.ears.silent, m.perKey
		defer func() { m.ears.mood, m.ears.silent, m.perKey = mood, silent, perKey }()
	}
	if m.group != nil && !wrong {
		m.sweep() // as Update does, for the listener of before
	}
	if how%4 > 1 {
		m.ears.silent = how%4 == 2
	}
	m.perKey = m.group != nil && how%2 == 1
	switch {
	case how == 12:
		c.RecordTotals = !s.Totals
	case how == 14:
		c.Probes = 32
	case wrong:
		m.ears.mood, m.ears.silent = calm, false
	}
	update := func() error { return m.breaker.Update(m.hearing(c)) }
	if m.group != nil {
		update = func() error { return m.group.Update(m.grouped(c, m.models[0].Forget)) }
	}
	if err := update(); wrong {
		require.Error(m.t, err)
		return
	} else {
		require.NoError(m.t, err)
	}
	for _, spec := range m.models {
		spec.Update(s)
	}
}

// windowed reports whether a policy counts in windows of time.
func windowed(p model.Policy) bool {
	return slices.ContainsFunc(p, func(r model.Rule) bool { return r.Window != 0 })
}
