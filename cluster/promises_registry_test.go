package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/registry"
)

// Writes of a key are linearizable; reads are behind by a message.
func registryWell(t *testing.T, e *engine) func(*testing.T) {
	v, err := e.near.plans.Create(within(t), "a", 1)
	require.NoError(t, err)
	_, err = e.far.plans.Create(within(t), "a", 2)
	require.ErrorIs(t, err, registry.ErrExists)
	got, err := e.far.plans.Wait(within(t), "a", 0)
	require.NoError(t, err)
	require.Equal(t, v, got.Version)
	_, err = e.far.plans.UpdateIf(within(t), "a", v, 3)
	require.NoError(t, err)
	_, err = e.near.plans.UpdateIf(within(t), "a", v, 4)
	require.ErrorIs(t, err, registry.ErrConflict)
	return nil
}

// Reads as before, older: Lag says how old; writes take as long.
func registrySlow(t *testing.T, e *engine) func(*testing.T) {
	began := time.Now()
	result, ended := later(func() error { _, err := e.near.plans.Put(within(t), "before", 2); return err })
	for range 10_000 {
		got, ok := e.far.plans.Get("before")
		require.True(t, ok)
		require.Contains(t, []int{1, 2}, got)
	}
	require.Less(t, time.Since(began), 10_000*delay)
	require.NoError(t, result())
	require.True(t, ended())
	require.GreaterOrEqual(t, time.Since(began), 2*delay)
	require.NoError(t, e.far.plans.Sync(within(t)))
	lag := e.far.plans.Lag()
	require.True(t, lag.Attached)
	require.GreaterOrEqual(t, lag.Proven, 2*delay)
	return nil
}

// Reads as before; writes wait for the next leader.
func registryLeaderless(t *testing.T, e *engine) func(*testing.T) {
	result, ended := later(func() error { _, err := e.near.plans.Put(lasting(e.t, time.Minute), "a", 1); return err })
	pass()
	require.False(t, ended())
	for _, r := range []*replica{e.near, e.far} {
		got, _ := r.plans.Get("before")
		require.Equal(t, 1, got)
	}
	return func(t *testing.T) {
		require.NoError(t, result())
		_, err := e.far.plans.Wait(within(t), "a", 0)
		require.NoError(t, err)
	}
}

// Reads as before, unchanged; writes end with their context: ErrUnknown if one was sent, and
// else ErrUnavailable.
func registryCutOff(t *testing.T, e *engine) func(*testing.T) {
	v, err := e.far.plans.Put(within(t), "before", 2)
	require.NoError(t, err)
	_, err = e.near.plans.Put(shortly(t), "sent", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, isAny(err, registry.ErrUnknown, registry.ErrUnavailable), err)
	eventually(t, func() bool { return !e.near.plans.Lag().Attached })
	got, _ := e.near.plans.Get("before")
	require.Equal(t, 1, got)
	return func(t *testing.T) {
		e, err := e.near.plans.Wait(within(t), "before", v-1)
		require.NoError(t, err)
		require.Equal(t, 2, e.Value)
	}
}

func registryDown(t *testing.T, e *engine) func(*testing.T) {
	eventually(t, func() bool { return !e.near.js.Conn().IsConnected() })
	_, err := e.near.plans.Put(shortly(t), "a", 1)
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	got, _ := e.near.plans.Get("before")
	require.Equal(t, 1, got)
	eventually(t, func() bool { l := e.near.plans.Lag(); return !l.Attached && l.Err != nil })
	return func(t *testing.T) {
		_, err := e.near.plans.Create(within(t), "a", 2)
		require.NoError(t, err, "nothing was stored")
	}
}

// Mirrors show the backup within seconds; what came after it is lost.
func registryRestored(t *testing.T, e *engine) func(*testing.T) {
	for _, r := range []*replica{e.near, e.far} {
		eventually(t, func() bool {
			before, _ := r.plans.Get("before")
			_, lost := r.plans.Get("lost")
			return before == 1 && !lost
		})
		eventually(t, func() bool { return r.plans.Stats().Resets == 1 })
	}
	_, err := e.near.plans.Create(within(t), "lost", 3)
	require.NoError(t, err)
	return nil
}
