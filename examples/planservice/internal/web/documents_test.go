package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// A strategy gets another URL by its version, and is called there from then on.
func TestStrategyGetsAnotherURL(t *testing.T) {
	answer := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	_, client := serve(t, service.Config{})
	ctx := t.Context()
	first, err := client.CreateStrategy(ctx, api.Strategy{Name: "Remote", URL: answer(500)})
	require.NoError(t, err)
	assert.Equal(t, "remote", first.Value.Name)
	_, err = client.CreateStrategy(ctx, api.Strategy{Name: "remote", URL: answer(500)})
	assert.True(t, api.IsCode(err, api.CodeExists), err)
	_, err = client.CreateAction(ctx, api.Action{Name: "a"})
	require.NoError(t, err)
	_, err = client.CreatePlan(ctx, api.Plan{Name: "p", Actions: []string{"a"}, Strategies: []string{"remote"}})
	require.NoError(t, err)
	outcome := func() string {
		run, err := client.Run(ctx, "p", api.RunPlan{Start: true})
		require.NoError(t, err)
		return run.Results[0].Outcome
	}
	assert.Equal(t, api.OutcomeFailure, outcome())
	second, err := client.PutStrategy(ctx, "REMOTE", first.Version, api.Strategy{URL: answer(200)})
	require.NoError(t, err)
	assert.Equal(t, api.OutcomeSuccess, outcome())
	_, err = client.PutStrategy(ctx, "remote", first.Version, first.Value)
	assert.True(t, api.IsCode(err, api.CodeConflict), err)
	got, err := client.Strategy(ctx, "remote")
	require.NoError(t, err)
	assert.Equal(t, second, got)
	all, err := client.Strategies(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"direct", "remote"}, []string{all[0].Value.Name, all[1].Value.Name})
}

// What replicas cannot do has a code and a status of its own.
func TestErrorsOfReplicas(t *testing.T) {
	h := &server{log: slog.New(slog.DiscardHandler)}
	for err, want := range map[error]string{
		state.ErrElsewhere:   "409 elsewhere",
		state.ErrUnavailable: "503 unavailable",
		state.ErrUnknown:     "504 unknown",
		service.ErrStopping:  "503 stopping",
	} {
		w := httptest.NewRecorder()
		h.fail(w, httptest.NewRequest("POST", "/", nil), fmt.Errorf("wrapped: %w", err))
		assert.Equal(t, want[:3], fmt.Sprint(w.Code))
		assert.Contains(t, w.Body.String(), `"code":"`+want[4:]+`"`)
		assert.Equal(t, w.Code == 503, w.Header().Get("Retry-After") != "")
	}
}
