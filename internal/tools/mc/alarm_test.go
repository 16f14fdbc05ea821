//go:build modelcheck

package mc_test

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Where time is kept, a timer fires when the clock has come to it, and not if it was stopped
// before; one that starts itself again does so once for each turn of the clock.
func TestTimedTimers(t *testing.T) {
	mc.Check(t, mc.Config{Timed: true}, func(m *mc.M) {
		var early, late, stopped, again mc.Tally
		m.Go(func() {
			began := atomics.Now()
			atomics.After(time.Second, func() {
				if again.Add(1); atomics.Since(began) < time.Second {
					m.Failf("the clock stands still")
				}
				atomics.After(time.Second, func() { again.Add(1) })
			})
			atomics.After(0, func() { early.Add(1) })
			atomics.After(time.Hour, func() { late.Add(1) })
			stop := atomics.After(time.Second, func() { stopped.Add(1) })
			stop()
			m.Advance(time.Second)
		})
		m.Final(func() {
			if early.Value() != 1 || late.Value() != 0 || stopped.Value() != 0 || again.Value() != 1 {
				m.Failf("%d, %d, %d, %d timers have fired", early.Value(), late.Value(), stopped.Value(), again.Value())
			}
		})
	})
}

// Without that, time passes at any speed.
func TestTimersOfAnySpeed(t *testing.T) {
	mc.Check(t, mc.Config{}, func(m *mc.M) {
		var fired mc.Tally
		m.Go(func() { atomics.After(time.Hour, func() { fired.Add(1) }) })
		m.Final(func() {
			if fired.Value() != 1 {
				m.Failf("%d timers have fired", fired.Value())
			}
		})
	})
}
