//go:build modelcheck

package mc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

func TestChoicesAndFaults(t *testing.T) {
	seen := map[string]int{}
	r := mc.Check(t, mc.Config{}, func(m *mc.M) {
		where := []string{"first step", "later step"}[m.Choose(2)]
		outcome := "goexit"
		m.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					outcome = "panic " + p.(error).Error()
				}
			}()
			if where == "later step" {
				new(atomics.Bool).Load()
			}
			if err := m.Fault(mc.Error, mc.Panic, mc.Goexit); errors.Is(err, mc.ErrInjected) {
				outcome = "error"
			} else {
				outcome = "ok"
			}
		})
		m.Final(func() { seen[where+": "+outcome]++ })
	})
	want := []string{"ok", "error", "panic mc: injected fault", "goexit"}
	for _, where := range []string{"first step", "later step"} {
		for _, outcome := range want {
			if seen[where+": "+outcome] != 1 {
				t.Errorf("%s: %s was seen %d times", where, outcome, seen[where+": "+outcome])
			}
		}
	}
	if r.Schedules != 8 {
		t.Errorf("%v; want 8 executions", r)
	}
}

func TestClockMovesWhenToldTo(t *testing.T) {
	waits := map[time.Duration]bool{}
	mc.Check(t, mc.Config{}, func(m *mc.M) {
		start := atomics.Now()
		m.Go(func() { m.Jump(time.Second, time.Hour) })
		var waited time.Duration
		m.Go(func() { waited = atomics.Since(start) })
		m.Final(func() { waits[waited] = true })
	})
	if len(waits) != 3 || !waits[0] || !waits[time.Second] || !waits[time.Hour] {
		t.Errorf("waits = %v, want 0, a second, an hour", waits)
	}
	if d := time.Since(atomics.Now()); d > time.Hour || d < -time.Hour {
		t.Errorf("outside explorations the clock is off by %v", d)
	}
}
