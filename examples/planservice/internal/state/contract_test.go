package state_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
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
	"github.com/latchfree/latchfree/examples/planservice/internal/state/clustered"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/locked"
)

var (
	startCluster = sync.OnceValues(func() (*nodetest.Cluster, error) { return nodetest.Start(3) })
	replicas     atomic.Int32 // that were opened
	closeCluster = func() error { return nil }
)

func cluster(t *testing.T) *nodetest.Cluster {
	t.Helper()
	c, err := startCluster()
	require.NoError(t, err)
	closeCluster = c.Close
	return c
}

func TestMain(m *testing.M) {
	code := m.Run()
	closeCluster()
	os.Exit(code)
}

// each runs a test with the implementations that lose nothing.
func each(t *testing.T, test func(t *testing.T, set state.Set, opened *atomic.Uint64)) {
	for _, name := range []string{"latchfree", "locked", "clustered"} {
		t.Run(name, func(t *testing.T) {
			opened := new(atomic.Uint64)
			open := func(ctx context.Context, url string) (*engine.Engine, error) {
				return engine.Open(ctx, url, opened.Add(1), nil)
			}
			set := locked.New(open, 3)
			var err error
			switch name {
			case "latchfree":
				set, err = latchfree.New(t.Context(), latchfree.Config{Open: open, Threshold: 3, OpenTimeout: time.Hour, IdleTimeout: time.Hour})
			case "clustered":
				if testing.Short() {
					t.Skip("-short: three servers start")
				}
				c := cluster(t)
				replica := int(replicas.Add(1)) % len(c.Clients) // so that the first tests have a trail that is empty
				set, err = clustered.New(t.Context(), clustered.Config{JetStream: c.Clients[replica], Replica: replica, Replicas: len(c.Clients),
					Open: open, Threshold: 3, OpenTimeout: time.Hour, IdleTimeout: time.Hour,
					StartTimeout: time.Minute, Timeout: time.Minute, MaxLag: time.Minute, Log: slog.New(slog.DiscardHandler)})
			}
			require.NoError(t, err)
			assert.Equal(t, name, set.Name)
			test(t, set, opened)
			assert.NoError(t, set.Engines.Close(context.Background()))
			assert.NoError(t, set.Changesets.Close(context.Background()))
			if set.Close != nil {
				assert.NoError(t, set.Close(context.Background()))
			}
		})
	}
}

// together runs n functions at once.
func together(n int, f func(i int)) {
	var start, ended sync.WaitGroup
	start.Add(1)
	for i := range n {
		ended.Go(func() { start.Wait(); f(i) })
	}
	start.Done()
	ended.Wait()
}

func TestCreationsAndUpdates(t *testing.T) {
	each(t, func(t *testing.T, set state.Set, _ *atomic.Uint64) {
		spellings := []string{"plan %d", "Plan %d", " PLAN  %d", "plan-%d"}
		for round := range 50 {
			var created, updated atomic.Int32
			var first atomic.Uint64 // version
			together(len(spellings), func(i int) {
				name := fmt.Sprintf(spellings[i], round)
				switch _, err := set.Actions.Create(t.Context(), name, api.Action{}); {
				case err == nil:
					created.Add(1)
				case !errors.Is(err, state.ErrExists):
					t.Error(err)
				}
				was, err := set.Actions.Get(name)
				if !assert.NoError(t, err) {
					return
				}
				first.CompareAndSwap(0, was.Version)
				switch _, err := set.Actions.Update(t.Context(), name, first.Load(), api.Action{Description: "updated"}); {
				case err == nil:
					updated.Add(1)
				case !errors.Is(err, state.ErrConflict):
					t.Error(err)
				}
			})
			assert.Equal(t, []int32{1, 1}, []int32{created.Load(), updated.Load()})
			e, err := set.Actions.Get(fmt.Sprintf("PLAN %d", round))
			require.NoError(t, err)
			assert.Greater(t, e.Version, first.Load())
			assert.Equal(t, "updated", e.Value.Description)
			assert.Equal(t, fmt.Sprintf("plan-%d", round), e.Name)
		}
		assert.Len(t, slices.Collect(set.Actions.All()), 50)
		_, err := set.Actions.Update(t.Context(), "absent", 1, api.Action{})
		assert.ErrorIs(t, err, state.ErrNotFound)
		_, err = set.Actions.Create(t.Context(), "a/b", api.Action{})
		assert.ErrorIs(t, err, state.ErrInvalidName)
		_, err = set.Actions.Get("")
		assert.ErrorIs(t, err, state.ErrNotFound)
	})
}

// Changesets are started and applied while others record: what is applied is what the
// receipts say.
func TestReceiptsAndApplications(t *testing.T) {
	each(t, func(t *testing.T, set state.Set, _ *atomic.Uint64) {
		ctx := t.Context()
		_, err := set.Changesets.Record(ctx, api.Change{})
		assert.ErrorIs(t, err, state.ErrNoActive)
		_, err = set.Changesets.Start(ctx, "first")
		require.NoError(t, err)
		var mu sync.Mutex
		receipts, applied := map[string]string{}, map[string]string{}
		apply := func(c api.Changeset) {
			assert.NoError(t, set.Changesets.Apply(ctx, c.ID, func(_ context.Context, changes []api.Change) error {
				mu.Lock()
				defer mu.Unlock()
				for _, change := range changes {
					applied[change.ID] = c.ID
				}
				return nil
			}))
		}
		together(4, func(i int) {
			if i == 0 {
				for range 50 {
					_, err := set.Changesets.Start(ctx, "p")
					assert.NoError(t, err)
					all := slices.Collect(set.Changesets.All())
					apply(all[len(all)-2])
				}
				return
			}
			for n := range 300 {
				id := fmt.Sprint(i, "/", n)
				r, err := set.Changesets.Record(ctx, api.Change{ID: id})
				assert.NoError(t, err)
				mu.Lock()
				receipts[id] = r.Changeset
				mu.Unlock()
			}
		})
		all := slices.Collect(set.Changesets.All())
		last := all[len(all)-1]
		assert.Equal(t, api.Changeset{ID: last.ID, Replica: set.Replica, Ordinal: 51, Plan: "p", Changes: last.Changes}, last)
		apply(last)
		assert.Len(t, receipts, 900)
		assert.Equal(t, receipts, applied)
		trail := map[string]string{}
		for r, c := range set.Changesets.Trail() {
			assert.Equal(t, c.ID, r.Change)
			trail[c.ID] = r.Changeset
		}
		assert.Equal(t, receipts, trail)
	})
}

func TestApplyFailsAndIsDoneOnce(t *testing.T) {
	each(t, func(t *testing.T, set state.Set, _ *atomic.Uint64) {
		ctx := t.Context()
		c, err := set.Changesets.Start(ctx, "p")
		require.NoError(t, err)
		assert.ErrorIs(t, set.Changesets.Apply(ctx, c.ID, func(context.Context, []api.Change) error {
			_, err := set.Changesets.Record(ctx, api.Change{})
			assert.ErrorIs(t, err, state.ErrNoActive)
			assert.ErrorIs(t, set.Changesets.Apply(ctx, c.ID, nilApply), state.ErrApplying)
			return assert.AnError
		}), assert.AnError)
		assert.PanicsWithValue(t, "fn", func() {
			set.Changesets.Apply(ctx, c.ID, func(context.Context, []api.Change) error { panic("fn") })
		})
		require.NoError(t, set.Changesets.Apply(ctx, c.ID, nilApply))
		assert.ErrorIs(t, set.Changesets.Apply(ctx, c.ID, nilApply), state.ErrApplied)
		c, err = set.Changesets.Seal(ctx, c.ID)
		require.NoError(t, err)
		assert.True(t, c.Sealed && c.Applied)
		_, err = set.Changesets.Seal(ctx, "unknown")
		assert.ErrorIs(t, err, state.ErrNotFound)
		assert.ErrorIs(t, set.Changesets.Apply(ctx, "unknown", nilApply), state.ErrNotFound)
	})
}

func nilApply(context.Context, []api.Change) error { return nil }

func TestBreakersCountExactly(t *testing.T) {
	each(t, func(t *testing.T, set state.Set, _ *atomic.Uint64) {
		for round := range 200 {
			name := fmt.Sprint(round)
			var tripped atomic.Int32
			together(3, func(int) {
				done, err := set.Breakers.Allow(name)
				if assert.NoError(t, err) && done(assert.AnError) == "Tripped" {
					tripped.Add(1)
				}
			})
			assert.Equal(t, int32(1), tripped.Load())
			_, err := set.Breakers.Allow(name)
			assert.ErrorIs(t, err, state.ErrRejected)
			assert.Equal(t, "Open", set.Breakers.Get(name).State)
		}
		set.Breakers.Reset("0")
		assert.Equal(t, "Closed", set.Breakers.Get("0").State)
		set.Breakers.ResetAll()
		assert.Equal(t, "Closed", set.Breakers.Get("1").State)
	})
}

func TestOneEngineForAURL(t *testing.T) {
	each(t, func(t *testing.T, set state.Set, opened *atomic.Uint64) {
		for round := range 5 {
			url := fmt.Sprint("memory:", round)
			together(4, func(i int) {
				e, release, err := set.Engines.Acquire(t.Context(), url)
				if assert.NoError(t, err) {
					defer release()
					assert.NoError(t, e.Migrate(t.Context()))
					_, err := e.Write(t.Context(), fmt.Sprint(i), fmt.Sprint(i), nil)
					assert.NoError(t, err)
				}
			})
			assert.Equal(t, uint64(round+1), opened.Load())
		}
		assert.Len(t, slices.Collect(set.Engines.All()), 5)
		_, _, err := set.Engines.Acquire(t.Context(), "nonsense")
		assert.ErrorIs(t, err, engine.ErrURL)
	})
}

func TestNormalize(t *testing.T) {
	for _, name := range []string{"", " ", "a/b", "a\x00", "a\xff", "..", ".", "a?", strings.Repeat("a", 101), strings.Repeat(" ", 1000) + "a"} {
		_, err := state.Normalize(name)
		assert.ErrorIs(t, err, state.ErrInvalidName, "%q", name)
	}
	for name, want := range map[string]string{" A  b\t": "a-b", "ÄÖ_1.x": "äö_1.x", strings.Repeat("a", 100): strings.Repeat("a", 100)} {
		got, err := state.Normalize(name)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
		again, err := state.Normalize(got)
		assert.NoError(t, err)
		assert.Equal(t, got, again)
	}
}
