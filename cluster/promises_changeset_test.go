package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cowchangeset"
)

type (
	header = cowchangeset.Header
	entry  = cowchangeset.Entry[string]
)

// loaded returns the entries of changeset "a".
func loaded(t *testing.T, s *changeset.Store[string]) (values []string) {
	t.Helper()
	for c, err := range s.Load(within(t)) {
		require.NoError(t, err)
		for _, e := range c.Entries {
			values = append(values, e.Value)
		}
	}
	return values
}

// resumed returns a tracker of a replica.
func resumed(t *testing.T, r *replica) *cowchangeset.Tracker[string] {
	t.Helper()
	s, err := changeset.Open(within(t), r.js, changeset.Options[string]{Stream: "TRAIL"})
	require.NoError(t, err)
	tracker, err := cowchangeset.Resume(within(t), cowchangeset.Config[string]{Store: s})
	require.NoError(t, err)
	return tracker
}

func appending(r *replica, ctx context.Context, seq uint64, value string) error {
	return r.trail.Append(ctx, "a", []entry{{Seq: seq, Value: value}})
}

// Record returns when a majority of the servers has it. Another replica can follow, and
// take the trail.
func changesetWell(t *testing.T, e *engine) func(*testing.T) {
	tracker := resumed(t, e.near)
	_, err := tracker.Record("recorded")
	require.NoError(t, err)
	r, err := changeset.Open(within(t), e.far.js, changeset.Options[string]{Stream: "TRAIL"})
	require.NoError(t, err)
	for event, err := range r.Follow(within(t), changeset.Position{}) {
		require.NoError(t, err)
		if event.Kind == changeset.Appended && event.Entries[0].Value == "recorded" {
			break
		}
	}
	require.NoError(t, e.far.trail.Claim(within(t)))
	require.Equal(t, []string{"before", "recorded"}, loaded(t, e.far.trail))
	_, err = tracker.Record("late")
	require.ErrorIs(t, err, changeset.ErrFenced)
	return nil
}

// The same, slower; entries that wait share a message.
func changesetSlow(t *testing.T, e *engine) func(*testing.T) {
	tracker := resumed(t, e.near)
	messages := func() uint64 {
		s, err := e.near.js.Stream(within(t), "TRAIL")
		require.NoError(t, err)
		return s.CachedInfo().State.Msgs
	}
	before, began := messages(), time.Now()
	var results []func() error
	for i := range 64 {
		result, _ := later(func() error { _, err := tracker.Record(fmt.Sprint(i)); return err })
		results = append(results, result)
	}
	for _, result := range results {
		require.NoError(t, result())
	}
	require.GreaterOrEqual(t, time.Since(began), 2*delay)
	require.Less(t, messages()-before, uint64(32))
	return nil
}

// Calls wait, nothing is acknowledged.
func changesetLeaderless(t *testing.T, e *engine) func(*testing.T) {
	result, ended := later(func() error { return appending(e.near, lasting(e.t, time.Minute), 1, "waits") })
	pass()
	require.False(t, ended())
	return func(t *testing.T) {
		require.NoError(t, result())
		require.NoError(t, e.far.trail.Claim(within(t)))
		require.Equal(t, []string{"before", "waits"}, loaded(t, e.far.trail))
	}
}

// Calls wait; ErrFenced if another replica has resumed.
func changesetCutOff(t *testing.T, e *engine) func(*testing.T) {
	result, ended := later(func() error { return appending(e.near, lasting(e.t, time.Minute), 1, "cut off") })
	require.NoError(t, e.far.trail.Claim(within(t)))
	require.NoError(t, appending(e.far, within(t), 1, "taken"))
	require.False(t, ended())
	return func(t *testing.T) {
		require.ErrorIs(t, result(), changeset.ErrFenced)
		require.Equal(t, []string{"before", "taken"}, loaded(t, e.far.trail))
	}
}

func changesetDown(t *testing.T, e *engine) func(*testing.T) {
	err := appending(e.near, shortly(t), 1, "unknown")
	require.ErrorIs(t, err, changeset.ErrUnknown)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	result, ended := later(func() error { return appending(e.near, lasting(e.t, time.Minute), 1, "waits") })
	pass()
	require.False(t, ended())
	return func(t *testing.T) {
		require.NoError(t, result())
		require.Len(t, loaded(t, e.near.trail), 2)
	}
}

// ErrRewound to a writer that knows more; it never goes on in the other history.
func changesetRestored(t *testing.T, e *engine) func(*testing.T) {
	limit := time.Second
	if natstest.Long() { // the error is certain after 12 seconds
		limit = 40 * time.Second
	}
	err := appending(e.near, lasting(t, limit), 2, "more")
	for limit < 20*time.Second && !errors.Is(err, changeset.ErrRewound) { // the machine is busy
		limit *= 2
		err = appending(e.near, lasting(t, limit), 2, "more")
	}
	require.ErrorIs(t, err, changeset.ErrRewound)
	require.NoError(t, e.far.trail.Claim(within(t)))
	require.Equal(t, []string{"before"}, loaded(t, e.far.trail))
	require.NoError(t, appending(e.far, within(t), 1, "other"))
	require.ErrorIs(t, appending(e.near, within(t), 2, "more"), changeset.ErrFenced)
	require.Equal(t, []string{"before", "other"}, loaded(t, e.far.trail))
	return nil
}
