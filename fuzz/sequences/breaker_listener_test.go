package sequences

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// listenerMood is what a listener does: it may reset its breaker on every third
// event, or panic.
type listenerMood byte

const (
	deaf listenerMood = iota
	calm
	eager
	anxious
)

// breakerListener is what the listeners of all keys were told, and what they should
// have been.
type breakerListener struct {
	mood   listenerMood
	told   [breakerKeys][]ab.Event
	wanted [breakerKeys]int // events of the models that were compared
	failed bool             // a listener has panicked
	silent bool             // Update has taken the listener away
	missed bool             // events, while it was away
}

// hearing adds the listener to the settings of a Breaker, and listening to those of a Group.
func (m *breakerMachine) hearing(c ab.Config) ab.Config {
	if m.ears.mood != deaf && !m.ears.silent {
		c.OnStateChange = func(e ab.Event) { m.hear("", e) }
	}
	return c
}

func (m *breakerMachine) listening(c ab.GroupConfig[string]) ab.GroupConfig[string] {
	if m.ears.mood != deaf && !m.ears.silent {
		c.OnStateChange = m.hear
	}
	return c
}

func (e *breakerListener) acts(nth int) bool { return nth%3 == 0 }

// hear is the listener.
func (m *breakerMachine) hear(name string, e ab.Event) {
	key := slices.Index(breakerNames[:], name)
	told := append(m.ears.told[key], e)
	m.ears.told[key] = told
	if !m.ears.acts(len(told)) {
		return
	}
	switch m.ears.mood {
	case eager:
		if m.breaker != nil {
			m.breaker.Reset()
		} else {
			m.group.Reset(name)
		}
		require.Len(m.t, m.ears.told[key], len(told), "told inside")
	case anxious:
		m.ears.failed = true
		panic(errDown)
	}
}

// heard compares what a listener was told with the model.
func (m *breakerMachine) heard(key int) {
	m.heardSoFar(key)
	if m.ears.mood != deaf {
		require.Len(m.t, m.ears.told[key], len(m.models[key].Events))
	}
}

// heardSoFar is heard in the middle of a call. The listener may have changed
// the breaker.
func (m *breakerMachine) heardSoFar(key int) {
	e, spec := &m.ears, m.models[key]
	if e.mood == deaf {
		return
	}
	if e.silent {
		e.missed = e.missed || len(spec.Events) > e.wanted[key]
		spec.Events = spec.Events[:e.wanted[key]]
	}
	for ; e.wanted[key] < len(spec.Events); e.wanted[key]++ {
		i := e.wanted[key]
		require.Greater(m.t, len(e.told[key]), i, "events")
		got := e.told[key][i]
		if got.Generation != 1 && i > 0 && !e.missed {
			require.Equal(m.t, e.told[key][i-1].Generation+1, got.Generation)
		}
		require.True(m.t, got.At.Equal(time.Now()), "event of %v", got.At)
		got.Generation, got.At = 0, time.Time{}
		require.Equal(m.t, spec.Events[i], got, "event %d", i)
		if e.mood == eager && e.acts(i+1) {
			spec.Reset()
		}
	}
}
