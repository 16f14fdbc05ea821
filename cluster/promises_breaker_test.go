package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
)

func becomes(t *testing.T, g *breaker.Group[string], key string, s atomicbreaker.State) {
	t.Helper()
	eventually(t, func() bool { return g.State(key) == s })
}

// fail makes calls for a key fail until its breaker opens, and checks that no call waits
// for the engine.
func fail(t *testing.T, g *breaker.Group[string], key string) {
	t.Helper()
	began := time.Now()
	for range 3 {
		_ = g.Do(context.Background(), key, func(context.Context) error { return context.DeadlineExceeded })
	}
	require.Equal(t, atomicbreaker.Open, g.State(key))
	require.Less(t, time.Since(began), time.Second)
}

// A hint is heard after some milliseconds.
func breakerWell(t *testing.T, e *engine) func(*testing.T) {
	fail(t, e.near.calls, "db")
	becomes(t, e.far.calls, "db", atomicbreaker.Open)
	e.far.calls.Reset("before")
	becomes(t, e.near.calls, "before", atomicbreaker.Closed)
	return nil
}

// No request is slower; the newest hint on a key replaces older ones.
func breakerSlow(t *testing.T, e *engine) func(*testing.T) {
	fail(t, e.near.calls, "db")
	published := e.near.calls.Hints().Published
	for range 50 {
		e.near.calls.ForceOpen("forced")
		e.near.calls.Disable("forced")
	}
	becomes(t, e.far.calls, "db", atomicbreaker.Open)
	eventually(t, func() bool { return e.near.calls.Hints().Waiting == 0 })
	becomes(t, e.far.calls, "forced", atomicbreaker.Disabled)
	require.Less(t, e.near.calls.Hints().Published-published, int64(20))
	return nil
}

// Hints wait.
func breakerLeaderless(t *testing.T, e *engine) func(*testing.T) {
	e.near.calls.Disable("waits")
	fail(t, e.near.calls, "db")
	pass()
	require.Equal(t, atomicbreaker.Closed, e.far.calls.State("waits"))
	require.Equal(t, atomicbreaker.ForcedOpen, e.far.calls.State("before"))
	return func(t *testing.T) {
		becomes(t, e.far.calls, "waits", atomicbreaker.Disabled)
		becomes(t, e.far.calls, "db", atomicbreaker.Open)
	}
}

// Each replica decides alone; hints wait for the time they are good for.
func breakerCutOff(t *testing.T, e *engine) func(*testing.T) {
	fail(t, e.near.calls, "near")
	e.near.calls.Trip("short", time.Millisecond)
	fail(t, e.far.calls, "far")
	e.far.calls.Reset("before")
	eventually(t, func() bool { return e.far.calls.Hints().Waiting == 0 })
	require.Equal(t, atomicbreaker.Closed, e.far.calls.State("near"))
	require.Equal(t, atomicbreaker.Closed, e.near.calls.State("far"))
	require.Equal(t, atomicbreaker.ForcedOpen, e.near.calls.State("before"))
	return func(t *testing.T) {
		becomes(t, e.far.calls, "near", atomicbreaker.Open)
		becomes(t, e.near.calls, "far", atomicbreaker.Open)
		becomes(t, e.near.calls, "before", atomicbreaker.Closed)
		require.Equal(t, atomicbreaker.Closed, e.far.calls.State("short"))
	}
}

// Also one that starts.
func breakerDown(t *testing.T, e *engine) func(*testing.T) {
	third := e.group(e.far.js)
	fail(t, third, "db")
	third.ForceOpen("forced")
	third.Trip("short", time.Millisecond)
	require.False(t, third.Hints().Connected)
	require.Equal(t, atomicbreaker.ForcedOpen, e.near.calls.State("before"))
	require.Equal(t, atomicbreaker.Closed, e.near.calls.State("forced"))
	return func(t *testing.T) {
		becomes(t, e.near.calls, "db", atomicbreaker.Open)
		becomes(t, e.near.calls, "forced", atomicbreaker.ForcedOpen)
		becomes(t, third, "before", atomicbreaker.ForcedOpen)
		eventually(t, func() bool { h := third.Hints(); return h.Connected && h.Published == 3 && h.Dropped == 0 })
		require.Equal(t, atomicbreaker.Closed, e.near.calls.State("short"))
	}
}

// Forced states of the backup apply again. What it does not have stays where it was.
func breakerRestored(t *testing.T, e *engine) func(*testing.T) {
	for _, r := range []*replica{e.near, e.far} {
		becomes(t, r.calls, "before", atomicbreaker.ForcedOpen)
		require.Equal(t, atomicbreaker.ForcedOpen, r.calls.State("lost"))
	}
	third := e.group(e.far.js)
	require.NoError(t, third.Wait(within(t)))
	require.Equal(t, atomicbreaker.ForcedOpen, third.State("before"))
	require.Equal(t, atomicbreaker.Closed, third.State("lost"))
	return nil
}
