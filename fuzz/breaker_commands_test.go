package fuzz

import (
	"github.com/stretchr/testify/require"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// What is done to a breaker by hand, and results that say for how long.

// command is one of Trip, ForceOpen and Disable.
func (m *breakerMachine) command(op byte, key int, arg byte) {
	name, spec, d := breakerNames[key], m.models[key], tripTime(arg)
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
		d := tripTime(arg)
		m.verdict(func() ab.Verdict { return h.permit.Trip(d) }, m.models[h.key].DoneTrip(h.spec, d), "verdict of Trip")
		m.heard(h.key)
	}
}

// update gives the breaker other settings, of which some are wrong, and some
// take the listener away or bring it back.
func (m *breakerMachine) update(how, arg byte) {
	was := m.ears.silent
	if how%4 > 1 {
		m.ears.silent = how%4 == 2
	}
	s := breakerSettings(arg, arg/breakerPolicies+how*19, m.times+how)
	s.Totals = m.models[0].Totals
	c := m.hearing(s.Config())
	switch {
	case how == 12:
		c.RecordTotals = !s.Totals
	case how == 14:
		c.Probes = 32
	case how == 13 && m.ears.mood == deaf:
		c.OnStateChange = func(ab.Event) { require.Fail(m.t, "told after all") }
	default:
		require.NoError(m.t, m.breaker.Update(c))
		m.models[0].Update(s)
		return
	}
	require.Error(m.t, m.breaker.Update(c))
	m.ears.silent = was
}
