package clustered

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/node/nodetest"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

const replicas = 3

// TestReplicas runs the tests with one engine, which the last one breaks.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: three servers start")
	}
	c, err := nodetest.Start(replicas)
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	for _, test := range []struct {
		name string
		run  func(*testing.T, *nodetest.Cluster)
	}{
		{"one success", testOneSuccess}, {"changesets of others", testChangesetsOfOthers}, {"comes back", testComesBack},
		{"breakers of others", testBreakersOfOthers}, {"no majority", testNoMajority},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

func config(c *nodetest.Cluster, replica int) Config {
	return Config{JetStream: c.Clients[replica], Replica: replica, Replicas: replicas, Threshold: 3, OpenTimeout: time.Hour, IdleTimeout: time.Hour,
		Open:         func(ctx context.Context, url string) (*engine.Engine, error) { return engine.Open(ctx, url, 1, nil) },
		StartTimeout: time.Minute, Timeout: time.Minute, MaxLag: time.Minute, Log: slog.New(slog.DiscardHandler)}
}

// open opens all replicas.
func open(t *testing.T, c *nodetest.Cluster) []state.Set {
	t.Helper()
	sets := make([]state.Set, replicas)
	together(func(replica int) {
		var err error
		sets[replica], err = New(t.Context(), config(c, replica))
		assert.NoError(t, err)
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, s := range sets {
			closeSet(t, s)
		}
	})
	return sets
}

func closeSet(t *testing.T, s state.Set) {
	ctx := context.Background()
	assert.NoError(t, errors.Join(s.Engines.Close(ctx), s.Changesets.Close(ctx), s.Close(ctx)))
}

func together(f func(replica int)) {
	var all sync.WaitGroup
	for i := range replicas {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// eventually waits until what a replica shows is what others have done.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 20*time.Second, time.Millisecond, what)
}

// Of creations and updates at all replicas at once, one succeeds.
func testOneSuccess(t *testing.T, c *nodetest.Cluster) {
	sets := open(t, c)
	for round := range 20 {
		name := fmt.Sprint("one-", round)
		var created, updated atomic.Int32
		var winner atomic.Pointer[string]
		version := make([]uint64, replicas)
		together(func(i int) {
			url := fmt.Sprint("http://", i)
			e, err := sets[i].Strategies.Create(t.Context(), name, api.Strategy{Name: name, URL: url})
			if err == nil {
				created.Add(1)
				winner.Store(&url)
			} else {
				assert.ErrorIs(t, err, state.ErrExists)
			}
			e, err = sets[i].Strategies.Get(name)
			assert.NoError(t, err, "a replica that has lost knows the winner")
			version[i] = e.Version
		})
		require.Equal(t, int32(1), created.Load())
		assert.Equal(t, []uint64{version[0], version[0], version[0]}, version)
		for _, s := range sets {
			e, err := s.Strategies.Get(name)
			require.NoError(t, err)
			assert.Equal(t, *winner.Load(), e.Value.URL)
		}
		together(func(i int) {
			_, err := sets[i].Strategies.Update(t.Context(), name, version[i], api.Strategy{URL: "http://new"})
			if err == nil {
				updated.Add(1)
			} else {
				assert.ErrorIs(t, err, state.ErrConflict)
			}
		})
		assert.Equal(t, int32(1), updated.Load())
	}
	_, err := sets[0].Strategies.Update(t.Context(), "absent", 1, api.Strategy{})
	assert.ErrorIs(t, err, state.ErrNotFound)
	for _, s := range sets {
		assert.NoError(t, s.Fresh())
		mirrors := s.Mirrors()
		require.Len(t, mirrors, 3)
		for _, m := range mirrors {
			assert.True(t, m.Attached && !m.Stale && m.Error == "", m)
			assert.Less(t, m.Lag, time.Minute.Milliseconds(), m)
		}
		assert.Equal(t, strategyBucket, mirrors[2].Bucket)
		assert.Equal(t, 20, mirrors[2].Entries)
		assert.GreaterOrEqual(t, mirrors[2].Revision, version(t, s.Strategies, "one-19"), "sync messages have revisions too")
	}
}

func version[V any](t *testing.T, r state.Registry[V], name string) uint64 {
	t.Helper()
	e, err := r.Get(name)
	require.NoError(t, err)
	return e.Version
}

// A changeset of one replica is shown by the others, which apply it when it is sealed.
func testChangesetsOfOthers(t *testing.T, c *nodetest.Cluster) {
	sets := open(t, c)
	ctx := t.Context()
	ours, err := sets[0].Changesets.Start(ctx, "p")
	require.NoError(t, err)
	assert.Equal(t, "0", ours.Replica)
	want := []api.Change{{ID: "a", Plan: "p"}, {ID: "b", Plan: "p", Value: "1"}}
	for _, change := range want {
		r, err := sets[0].Changesets.Record(ctx, change)
		require.NoError(t, err)
		assert.Equal(t, ours.ID, r.Changeset)
	}
	got, err := sets[1].Changesets.Get(ctx, ours.ID) // not there yet, perhaps
	require.NoError(t, err)
	assert.Equal(t, ours.ID, got.ID)
	assert.Equal(t, "p", got.Plan)
	assert.Equal(t, "0", got.Replica)
	_, err = sets[1].Changesets.Seal(ctx, ours.ID)
	assert.ErrorIs(t, err, state.ErrElsewhere)
	assert.ErrorIs(t, sets[1].Changesets.Apply(ctx, ours.ID, nil), state.ErrElsewhere)

	theirs, err := sets[1].Changesets.Start(ctx, "q")
	require.NoError(t, err)
	_, err = sets[0].Changesets.Seal(ctx, ours.ID)
	require.NoError(t, err)
	got, err = sets[1].Changesets.Seal(ctx, ours.ID)
	require.NoError(t, err, "it is sealed")
	ours.Sealed, ours.Changes = true, 2
	assert.Equal(t, ours, got)
	all := slices.Collect(sets[1].Changesets.All())
	assert.Equal(t, theirs.ID, all[len(all)-1].ID, "the own ones are last")
	assert.Contains(t, all, ours)

	var applied []api.Change
	fn := func(_ context.Context, changes []api.Change) error { applied = append(applied, changes...); return nil }
	assert.ErrorIs(t, sets[2].Changesets.Apply(ctx, ours.ID, func(context.Context, []api.Change) error { return assert.AnError }), assert.AnError)
	require.NoError(t, sets[2].Changesets.Apply(ctx, ours.ID, fn))
	assert.Equal(t, want, applied)
	assert.ErrorIs(t, sets[2].Changesets.Apply(ctx, ours.ID, fn), state.ErrApplied)
	got, err = sets[2].Changesets.Get(ctx, ours.ID)
	require.NoError(t, err)
	assert.True(t, got.Applied)

	require.NoError(t, sets[0].Changesets.Apply(ctx, ours.ID, fn), "the owner looks into the database")
	eventually(t, "all know that it is applied", func() bool {
		return errors.Is(sets[1].Changesets.Apply(ctx, ours.ID, func(context.Context, []api.Change) error { return assert.AnError }), state.ErrApplied)
	})
	for _, id := range []string{"absent", "p~0-ABSENT", "p~1-ABSENT", "p~7-ABSENT", "p~-1-ABSENT", "~", ""} {
		for _, s := range sets {
			_, err := s.Changesets.Get(ctx, id)
			assert.ErrorIs(t, err, state.ErrNotFound, id)
			assert.ErrorIs(t, s.Changesets.Apply(ctx, id, nil), state.ErrNotFound, id)
		}
	}
}

// A replica that comes back has its trail, and reads all of the others'.
func testComesBack(t *testing.T, c *nodetest.Cluster) {
	sets := open(t, c)
	ctx := t.Context()
	before, err := sets[2].Changesets.Start(ctx, "before")
	require.NoError(t, err)
	_, err = sets[2].Changesets.Record(ctx, api.Change{ID: "before"})
	require.NoError(t, err)
	other, err := sets[1].Changesets.Start(ctx, "other")
	require.NoError(t, err)

	again, err := New(ctx, config(c, 2)) // as after a kill: nobody has closed the first
	require.NoError(t, err)
	defer closeSet(t, again)
	receipt, err := again.Changesets.Record(ctx, api.Change{ID: "after"})
	require.NoError(t, err)
	assert.Equal(t, before.ID, receipt.Changeset)
	changes := map[string]int{}
	for r, c := range again.Changesets.Trail() {
		if r.Changeset == before.ID {
			changes[c.ID]++
		}
	}
	assert.Equal(t, map[string]int{"before": 1, "after": 1}, changes)
	_, err = again.Changesets.Get(ctx, other.ID)
	assert.NoError(t, err)
	_, err = sets[2].Changesets.Record(ctx, api.Change{ID: "late"})
	assert.Error(t, err, "the one before writes no more")
	assert.NotErrorIs(t, err, state.ErrUnknown, "and never will")
	eventually(t, "others follow the new process", func() bool {
		c, err := sets[0].Changesets.Get(ctx, before.ID)
		return err == nil && c.Changes == 2
	})
	sets[2].Changesets = again.Changesets // so that the cleanup closes what can be flushed
}

// Replicas hear of trips, and of resets.
func testBreakersOfOthers(t *testing.T, c *nodetest.Cluster) {
	sets := open(t, c)
	for range 3 {
		done, err := sets[0].Breakers.Allow("down")
		require.NoError(t, err)
		done(assert.AnError)
	}
	eventually(t, "others have heard", func() bool {
		return sets[1].Breakers.Get("down").State == "Open" && sets[2].Breakers.Get("down").State == "Open"
	})
	_, err := sets[1].Breakers.Allow("down")
	assert.ErrorIs(t, err, state.ErrRejected)
	sets[2].Breakers.Reset("down")
	eventually(t, "all are closed", func() bool {
		return sets[0].Breakers.Get("down").State == "Closed" && sets[1].Breakers.Get("down").State == "Closed"
	})
}

// Without a majority reads go on, and writes fail in time.
func testNoMajority(t *testing.T, c *nodetest.Cluster) {
	conf := config(c, 0)
	conf.Timeout, conf.MaxLag = 500*time.Millisecond, time.Second
	s, err := New(t.Context(), conf)
	require.NoError(t, err)
	defer s.Close(context.Background())
	ctx := t.Context()
	_, err = s.Actions.Create(ctx, "a", api.Action{Description: "kept"})
	require.NoError(t, err)
	set, err := s.Changesets.Start(ctx, "p")
	require.NoError(t, err)
	c.Nodes[1].Close()
	c.Nodes[2].Close()
	began := time.Now()
	_, err = s.Actions.Create(ctx, "b", api.Action{})
	assert.Less(t, time.Since(began), 20*time.Second, "and conf.Timeout is %v", conf.Timeout)
	assert.True(t, errors.Is(err, state.ErrUnknown) || errors.Is(err, state.ErrUnavailable), err)
	_, err = s.Changesets.Record(ctx, api.Change{ID: "x"})
	assert.ErrorIs(t, err, state.ErrUnknown)
	e, err := s.Actions.Get("a")
	require.NoError(t, err)
	assert.Equal(t, "kept", e.Value.Description)
	_, err = s.Changesets.Get(ctx, set.ID)
	assert.NoError(t, err)
	_, err = s.Changesets.Get(ctx, "p~1-ABSENT")
	assert.Error(t, err)
	done, err := s.Breakers.Allow("x")
	require.NoError(t, err, "breakers need nobody")
	assert.Equal(t, "Counted", done(nil))
	eventually(t, "the mirror says that it may be stale", func() bool { return errors.Is(s.Fresh(), state.ErrUnavailable) })
	for _, m := range s.Mirrors() {
		assert.True(t, m.Stale, m)
		assert.Greater(t, m.Lag, conf.MaxLag.Milliseconds()-1, m)
	}
	assert.Equal(t, 1, s.Mirrors()[0].Entries)
	conf.StartTimeout, conf.Replica = 300*time.Millisecond, 1
	_, err = New(ctx, conf)
	assert.Error(t, err, "a replica that starts needs the others")
}
