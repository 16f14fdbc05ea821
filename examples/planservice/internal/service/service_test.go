package service

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/pool"
)

// strategy answers calls of strategies without a network.
type strategy func(*http.Request) (*http.Response, error)

func (f strategy) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) strategy {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// start starts a service with an action "a", whose strategies other than direct are f.
func start(t *testing.T, c Config, f strategy) *Service {
	t.Helper()
	c.Log, c.Client = slog.New(slog.DiscardHandler), &http.Client{Transport: f}
	s, err := New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close(context.Background())) })
	_, err = s.CreateAction(t.Context(), api.Action{Name: "a"})
	require.NoError(t, err)
	return s
}

// plan creates a plan "p" with a strategy that is not built in, and with direct.
func plan(t *testing.T, s *Service) {
	t.Helper()
	_, err := s.CreateStrategy(t.Context(), api.Strategy{Name: "remote", URL: "http://strategy/"})
	require.NoError(t, err)
	_, err = s.CreatePlan(t.Context(), api.Plan{Name: "p", Actions: []string{"a"}, Strategies: []string{"remote", api.Direct}})
	require.NoError(t, err)
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"unknown store": {Store: "other"}, "no journal": {Store: "locked", Journal: "x"}, "threshold is -1": {Threshold: -1},
		"negative": {Pause: -1}, "queue is 63": {Queue: 63}, "-1 workers": {Workers: -1}, "memory databases is -1": {MemoryDatabases: -1},
		"strategy \"x\"": {Strategies: []api.Strategy{{Name: "x", URL: "file:///x"}}},
	} {
		_, err := New(t.Context(), c)
		assert.ErrorContains(t, err, want)
	}
}

// What a strategy answers is a success or a failure, whatever it is.
func TestAnswersOfStrategies(t *testing.T) {
	for name, c := range map[string]struct {
		answer  strategy
		outcome string
		changes int
	}{
		"no body":      {answer(200, " \n"), api.OutcomeSuccess, 1},
		"changes":      {answer(201, `{"changes":[{"action":"x"},{"action":"y","value":"1"}]}`), api.OutcomeSuccess, 2},
		"no changes":   {answer(200, `{}`), api.OutcomeSuccess, 0},
		"status":       {answer(503, `{"changes":[{"action":"x"}]}`), api.OutcomeFailure, 0},
		"redirect":     {answer(304, ""), api.OutcomeFailure, 0},
		"no JSON":      {answer(200, "<h1>"), api.OutcomeFailure, 0},
		"too long":     {answer(200, strings.Repeat(" ", maxAnswer+1)), api.OutcomeFailure, 0},
		"many changes": {answer(200, `{"changes":[`+strings.Repeat(`{},`, maxChanges)+`{}]}`), api.OutcomeFailure, 0},
		"panic":        {func(*http.Request) (*http.Response, error) { panic("broken") }, api.OutcomeFailure, 0},
	} {
		s := start(t, Config{}, c.answer)
		plan(t, s)
		run, err := s.Run(t.Context(), "P", api.RunPlan{Start: true})
		require.NoError(t, err)
		require.Len(t, run.Results, 2)
		assert.Equal(t, c.outcome, run.Results[0].Outcome, name)
		assert.Len(t, run.Results[0].Receipts, c.changes, name)
		assert.Equal(t, api.OutcomeSuccess, run.Results[1].Outcome, name)
		counts := s.Counts()
		assert.Equal(t, uint64(2), counts.Successes+counts.Failures, name)
		assert.Equal(t, uint64(c.changes+1), counts.Recorded, name)
	}
}

// A strategy that does not answer fails in time, and is not a caller who has left.
func TestStrategyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{StrategyTimeout: time.Second}, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		plan(t, s)
		began := time.Now()
		run, err := s.Run(t.Context(), "p", api.RunPlan{})
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, api.OutcomeFailure, run.Results[0].Outcome)

		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		run, err = s.Run(ctx, "p", api.RunPlan{})
		require.NoError(t, err)
		assert.Equal(t, api.OutcomeFailure, run.Results[0].Outcome, "the caller's deadline is the strategy's, too")

		ctx, leave = context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, leave)
		run, err = s.Run(ctx, "p", api.RunPlan{})
		require.NoError(t, err)
		assert.Equal(t, api.OutcomeCancelled, run.Results[0].Outcome)
		assert.Equal(t, uint64(1), s.Counts().Cancelled)
		assert.Equal(t, 2, s.Breakers()[1].Failures)
	})
}

// Clients may name so many databases and no more. The service's own is not one of them.
func TestDatabasesOfClientsAreBounded(t *testing.T) {
	for _, store := range []string{"latchfree", "locked", "naive"} {
		s := start(t, Config{Store: store, MemoryDatabases: 2}, nil)
		plan(t, s)
		ctx := t.Context()
		apply := func(database string) error {
			c, err := s.StartChangeset(ctx, "p")
			require.NoError(t, err)
			_, err = s.Apply(ctx, c.ID, "", database)
			return err
		}
		require.NoError(t, apply(""))
		require.NoError(t, apply("memory:one"))
		require.NoError(t, apply("memory:two"))
		require.ErrorIs(t, apply("memory:three"), ErrTooManyDatabases, store)
		require.NoError(t, apply("memory:ONE"), "it is open")
		require.NoError(t, apply("memory:plans"), "the service's own")
		assert.Len(t, s.Engines(), 3)
		assert.ErrorIs(t, apply("file:/etc/passwd"), ErrInvalid)
	}
}

func TestDatabasesAreBoundedTogether(t *testing.T) {
	const limit, clients = 5, 16
	s := start(t, Config{MemoryDatabases: limit}, nil)
	var all sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		all.Go(func() { errs[i] = s.migrate(t.Context(), fmt.Sprint("memory:", i)) })
	}
	all.Wait()
	opened := 0
	for _, err := range errs {
		if err == nil {
			opened++
		} else {
			assert.ErrorIs(t, err, ErrTooManyDatabases)
		}
	}
	assert.Equal(t, limit, opened)
	assert.Len(t, s.Engines(), limit)
}

// A database that could not be opened holds no place.
func TestFailedDatabaseHoldsNoPlace(t *testing.T) {
	s := start(t, Config{MemoryDatabases: 1}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.openEngine(ctx, "memory:x")
	require.ErrorIs(t, err, context.Canceled)
	assert.NoError(t, s.migrate(t.Context(), "memory:y"))
}

func TestApplyPlanGoesOn(t *testing.T) {
	s := start(t, Config{}, answer(200, ""))
	plan(t, s)
	ctx := t.Context()
	for range 3 {
		_, err := s.Run(ctx, "p", api.RunPlan{Start: true})
		require.NoError(t, err)
	}
	all := s.Changesets()
	_, err := s.Apply(ctx, all[1].ID, "other", "")
	require.NoError(t, err)
	first, err := s.ApplyPlan(ctx, "p", "key", "")
	require.NoError(t, err)
	again, err := s.ApplyPlan(ctx, "p", "key", "")
	require.NoError(t, err)
	for i, id := range []string{all[0].ID, all[2].ID} { // the other was applied under another key
		assert.Equal(t, api.Applied{Changeset: id, Key: "key/" + id, Database: "memory:plans", Engine: 1, Changes: 2}, first[i])
		assert.True(t, again[i].Replayed)
	}
	assert.Equal(t, uint64(6), s.Counts().Written)
}

func TestClosed(t *testing.T) {
	s := start(t, Config{}, nil)
	plan(t, s)
	require.True(t, s.Ready())
	require.NoError(t, s.Close(t.Context()))
	assert.False(t, s.Ready())
	_, err := s.Run(t.Context(), "p", api.RunPlan{})
	assert.ErrorIs(t, err, pool.ErrClosed)
}

func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{}, nil)
		stop := make(chan struct{})
		go s.Sample(stop)
		time.Sleep(time.Second / 2) // between ticks
		for i := range samples + 5 {
			for range i {
				s.CountRequest()
			}
			time.Sleep(time.Second)
		}
		history := s.History()
		require.Len(t, history, samples)
		assert.Equal(t, Sample{Requests: 5}, history[0])
		assert.Equal(t, Sample{Requests: samples + 4}, history[samples-1])
		close(stop)
	})
}
