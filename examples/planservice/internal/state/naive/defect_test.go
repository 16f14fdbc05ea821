package naive

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// newSet returns structures, and a function that runs first up to the step, then second
// to its end, and then the rest of first.
func newSet(t *testing.T) (set state.Set, interleave func(step string, first, second func())) {
	var mu sync.Mutex
	var at string
	reached, proceed := make(chan struct{}), make(chan struct{})
	number := uint64(0)
	set = New(Config{Threshold: 3,
		Open: func(ctx context.Context, url string) (*engine.Engine, error) {
			mu.Lock()
			defer mu.Unlock()
			number++
			return engine.Open(ctx, url, number, nil)
		},
		Step: func(step string) {
			mu.Lock()
			stop := step == at
			if stop {
				at = ""
			}
			mu.Unlock()
			if stop {
				reached <- struct{}{}
				<-proceed
			}
		}})
	t.Cleanup(func() { assert.NoError(t, set.Engines.Close(context.Background())) })
	return set, func(step string, first, second func()) {
		t.Helper()
		mu.Lock()
		at = step
		mu.Unlock()
		done := make(chan struct{})
		go func() { defer close(done); first() }()
		select {
		case <-reached:
		case <-done:
			t.Errorf("the step %q was not reached", step)
			return
		}
		second()
		proceed <- struct{}{}
		<-done
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func TestReportOfChangesets(t *testing.T) {
	ctx := t.Context()
	record := func(t *testing.T, s state.Changesets, id string) api.Receipt {
		return must[api.Receipt](t)(s.Record(ctx, api.Change{ID: id}))
	}
	applied := func(t *testing.T, s state.Changesets, id string) (ids []string) {
		require.NoError(t, s.Apply(ctx, id, func(_ context.Context, changes []api.Change) error {
			for _, c := range changes {
				ids = append(ids, c.ID)
			}
			return nil
		}))
		return ids
	}
	t.Run("a change lands in the changeset before", func(t *testing.T) {
		set, interleave := newSet(t)
		first := must[api.Changeset](t)(set.Changesets.Start(ctx, "p"))
		interleave("changesets: started in the store", func() { set.Changesets.Start(ctx, "p") }, func() {
			assert.Equal(t, first.ID, record(t, set.Changesets, "x").Changeset)
		})
	})
	t.Run("a change is lost at apply", func(t *testing.T) {
		set, interleave := newSet(t)
		first := must[api.Changeset](t)(set.Changesets.Start(ctx, "p"))
		var r api.Receipt
		interleave("changesets: read the current ID", func() { r = record(t, set.Changesets, "x") }, func() {
			assert.Empty(t, applied(t, set.Changesets, first.ID))
		})
		assert.Equal(t, first.ID, r.Changeset)
		assert.ErrorIs(t, set.Changesets.Apply(ctx, first.ID, nil), state.ErrApplied)
	})
	t.Run("the list is empty after the check", func(t *testing.T) {
		set, interleave := newSet(t)
		first := must[api.Changeset](t)(set.Changesets.Start(ctx, "p"))
		interleave("changesets: saw that there is one", func() {
			_, err := set.Changesets.Record(ctx, api.Change{})
			assert.ErrorIs(t, err, state.ErrIndex)
		}, func() { set.Changesets.Seal(ctx, first.ID) })
	})
	t.Run("the changeset that started first is current", func(t *testing.T) {
		set, interleave := newSet(t)
		interleave("changesets: started in the store", func() { set.Changesets.Start(ctx, "p") }, func() { set.Changesets.Start(ctx, "p") })
		assert.Equal(t, uint64(1), record(t, set.Changesets, "x").Ordinal)
	})
	t.Run("nothing is lost in sequence", func(t *testing.T) {
		set, _ := newSet(t)
		_, err := set.Changesets.Record(ctx, api.Change{})
		assert.ErrorIs(t, err, state.ErrNoActive)
		c := must[api.Changeset](t)(set.Changesets.Start(ctx, "p"))
		record(t, set.Changesets, "x")
		record(t, set.Changesets, "y")
		assert.Equal(t, []string{"x", "y"}, applied(t, set.Changesets, c.ID))
	})
}

func TestReportOfRegistry(t *testing.T) {
	t.Run("a creation is lost", func(t *testing.T) {
		set, interleave := newSet(t)
		var first, second error
		interleave("registry: looked for the name", func() { _, first = set.Actions.Create(t.Context(), "a", api.Action{Description: "1"}) },
			func() { _, second = set.Actions.Create(t.Context(), "a", api.Action{Description: "2"}) })
		assert.NoError(t, first)
		assert.NoError(t, second)
		assert.Equal(t, "1", must[state.Entry[api.Action]](t)(set.Actions.Get("a")).Value.Description)
	})
	t.Run("an update is lost", func(t *testing.T) {
		set, interleave := newSet(t)
		must[state.Entry[api.Action]](t)(set.Actions.Create(t.Context(), "a", api.Action{}))
		var first, second error
		interleave("registry: read the version", func() { _, first = set.Actions.Update(t.Context(), "a", 1, api.Action{}) },
			func() { _, second = set.Actions.Update(t.Context(), "a", 1, api.Action{}) })
		assert.NoError(t, first)
		assert.NoError(t, second)
		assert.Equal(t, uint64(2), must[state.Entry[api.Action]](t)(set.Actions.Get("a")).Version)
	})
	t.Run("a name is not found", func(t *testing.T) {
		set, _ := newSet(t)
		must[state.Entry[api.Action]](t)(set.Actions.Create(t.Context(), "Backup", api.Action{}))
		_, err := set.Actions.Get("Backup")
		assert.ErrorIs(t, err, state.ErrNotFound)
	})
	t.Run("nothing is lost in sequence", func(t *testing.T) {
		set, _ := newSet(t)
		must[state.Entry[api.Action]](t)(set.Actions.Create(t.Context(), "a", api.Action{}))
		_, err := set.Actions.Create(t.Context(), "a", api.Action{})
		assert.ErrorIs(t, err, state.ErrExists)
		must[state.Entry[api.Action]](t)(set.Actions.Update(t.Context(), "a", 1, api.Action{}))
		_, err = set.Actions.Update(t.Context(), "a", 1, api.Action{})
		assert.ErrorIs(t, err, state.ErrConflict)
	})
}

func TestReportOfBreakers(t *testing.T) {
	report := func(t *testing.T, b state.Breakers, err error) {
		done, rejected := b.Allow("s")
		require.NoError(t, rejected)
		done(err)
	}
	failed := assert.AnError
	t.Run("a failure is lost", func(t *testing.T) {
		set, interleave := newSet(t)
		report(t, set.Breakers, failed)
		interleave("breakers: read the count", func() { report(t, set.Breakers, failed) }, func() { report(t, set.Breakers, failed) })
		assert.Equal(t, api.Breaker{Strategy: "s", State: "Closed", Failures: 2}, set.Breakers.Get("s"))
	})
	t.Run("a success is lost", func(t *testing.T) {
		set, interleave := newSet(t)
		report(t, set.Breakers, failed)
		report(t, set.Breakers, failed)
		interleave("breakers: read the count", func() { report(t, set.Breakers, failed) }, func() { report(t, set.Breakers, nil) })
		assert.Equal(t, "Open", set.Breakers.Get("s").State)
	})
	t.Run("failures are undone by a success before them", func(t *testing.T) {
		set, interleave := newSet(t)
		interleave("breakers: cleared the count", func() { report(t, set.Breakers, nil) }, func() {
			for range 3 {
				report(t, set.Breakers, failed)
			}
		})
		assert.Equal(t, api.Breaker{Strategy: "s", State: "Closed", Failures: 3}, set.Breakers.Get("s"))
	})
	t.Run("nothing is lost in sequence", func(t *testing.T) {
		set, _ := newSet(t)
		for range 3 {
			report(t, set.Breakers, failed)
		}
		_, err := set.Breakers.Allow("s")
		assert.ErrorIs(t, err, state.ErrRejected)
		set.Breakers.Reset("s")
		report(t, set.Breakers, failed)
		set.Breakers.ResetAll()
		assert.Equal(t, api.Breaker{Strategy: "s", State: "Closed"}, set.Breakers.Get("s"))
	})
}

func TestReportOfEngines(t *testing.T) {
	set, interleave := newSet(t)
	ctx := t.Context()
	var migrated *engine.Engine
	interleave("engines: looked for the URL", func() {
		migrated, _, _ = set.Engines.Acquire(ctx, "memory:x")
		assert.NoError(t, migrated.Migrate(ctx))
	}, func() {
		work, _, err := set.Engines.Acquire(ctx, "memory:x")
		require.NoError(t, err)
		_, err = work.Write(ctx, "key", "changeset", nil)
		assert.ErrorContains(t, err, "no such table")
	})
	again, _, err := set.Engines.Acquire(ctx, "memory:x")
	require.NoError(t, err)
	assert.Same(t, migrated, again)
	assert.Equal(t, uint64(2), again.Number)
}
