package breaker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// A Trip ends a forced state at all replicas, also if its time passes before it is published.
// Then it opens nothing.
func TestTripPassesInTheOutbox(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	a, b := start(t, server.JetStream(), "a"), start(t, server.JetStream(), "b")
	a.ForceOpen("forced")
	a.Disable("disabled")
	b.becomes(t, "disabled", atomicbreaker.Disabled)
	server.Kill(0)
	for _, k := range []string{"forced", "disabled", "closed"} {
		a.Trip(k, time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
	server.Restart(0)
	for _, r := range []*replica{a, b} {
		r.becomes(t, "forced", atomicbreaker.HalfOpen)
		r.becomes(t, "disabled", atomicbreaker.HalfOpen)
	}
	b.hears(t, 5)
	require.Equal(t, atomicbreaker.Closed, b.State("closed"))
	require.NotContains(t, b.reasons(), atomicbreaker.ReasonTrip)
	require.EqualValues(t, 4, b.Hints().Applied, "two forced states, and their ends")
	eventually(t, func() bool { h := a.Hints(); return h.Published == 5 && h.Dropped == 0 })
	// A replica that comes now has no forced state.
	c := start(t, server.JetStream(), "c")
	require.Zero(t, c.Len())
}

// Forced states that contradict each other, given while the engine is away, end in that which
// is stored last.
func TestContradictionsConverge(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	a, b := start(t, server.JetStream(), "a"), start(t, server.JetStream(), "b")
	commands := map[string]func(r *replica, k string){
		"force":   func(r *replica, k string) { r.ForceOpen(k) },
		"disable": func(r *replica, k string) { r.Disable(k) },
		"pass":    func(r *replica, k string) { r.Trip(k, time.Nanosecond) },
		"forever": func(r *replica, k string) { r.Trip(k, -1) },
		"probe":   func(r *replica, k string) { r.HalfOpen(k) },
		"reset":   func(r *replica, k string) { r.Reset(k) },
	}
	for of, give := range commands {
		for and := range commands {
			give(a, of+and) // so that there is something to end
		}
	}
	settle(t, "given", a, b)
	server.Kill(0)
	var keys []string
	for of, give := range commands {
		for and, contradict := range commands {
			keys = append(keys, of+and)
			give(a, of+and)
			contradict(b, of+and)
		}
	}
	server.Restart(0)
	settle(t, "settled", a, b)
	for _, k := range keys {
		if !strings.Contains(k, "pass") {
			require.Equal(t, a.State(k), b.State(k), k)
			continue
		}
		// What a Trip has ended, whose time has passed, is left to the results of each.
		for _, forced := range []atomicbreaker.State{atomicbreaker.ForcedOpen, atomicbreaker.Disabled} {
			require.Equal(t, a.State(k) == forced, b.State(k) == forced, k)
		}
	}
}
