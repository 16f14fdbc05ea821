package demo

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
	"github.com/latchfree/latchfree/examples/planservice/internal/web"
)

// The demo brings everything that the page can show, and goes on.
func TestDemo(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	server, client := serve(t, "latchfree")
	for range 2 { // the second one finds what the first has left
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, Config{URL: server.URL, Tick: 20 * time.Millisecond, Log: log}) }()
		require.EventuallyWithT(t, func(t *assert.CollectT) { shows(t, client) }, time.Minute, 5*time.Millisecond)
		then, err := client.Status(ctx)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			now, err := client.Status(ctx)
			require.NoError(t, err)
			return now.Counts.Recorded > then.Counts.Recorded && now.Counts.Started > then.Counts.Started &&
				now.Counts.Applied > then.Counts.Applied && now.EngineCache.Hits > then.EngineCache.Hits
		}, time.Minute, 5*time.Millisecond)
		cancel()
		assert.NoError(t, <-ended)
	}
}

// The other stores can be looked at too.
func TestDemoOfOtherStores(t *testing.T) {
	for _, store := range []string{"naive", "locked"} {
		server, client := serve(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Run(ctx, Config{URL: server.URL, Tick: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		}()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			status, err := client.Status(context.Background())
			assert.NoError(t, err)
			assert.Greater(t, status.Counts.Started, uint64(15))
			assert.Greater(t, status.Counts.Applied, uint64(5))
			assert.Nil(t, status.EngineCache)
		}, time.Minute, 5*time.Millisecond)
		cancel()
		assert.NoError(t, <-ended)
	}
}

// serve starts the service with a store.
func serve(t *testing.T, store string) (*httptest.Server, *api.Client) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := service.New(t.Context(), service.Config{Store: store, Log: log, OpenTimeout: 300 * time.Millisecond})
	require.NoError(t, err)
	stop := make(chan struct{})
	server := httptest.NewServer(web.New(s, log, stop))
	t.Cleanup(func() {
		close(stop)
		server.Close()
		assert.NoError(t, s.Close(context.Background()))
	})
	return server, api.NewClient(server.URL, server.Client())
}

// shows fails unless the service is in all the states that it can be in, at one moment.
func shows(t *assert.CollectT, client *api.Client) {
	status, err := client.Status(context.Background())
	if !assert.NoError(t, err) {
		return
	}
	states := map[string]bool{}
	for _, b := range status.Breakers {
		states[b.State] = true
	}
	assert.Equal(t, map[string]bool{"Closed": true, "Open": true, "HalfOpen": true}, states)
	sets := map[string]bool{}
	for _, c := range status.Changesets {
		switch {
		case c.Applied:
			sets["applied"] = true
		case c.Sealed:
			sets["pending"] = true
		default:
			sets["current"] = true
		}
	}
	assert.Equal(t, map[string]bool{"applied": true, "pending": true, "current": true}, sets)
	assert.Len(t, status.Engines, len(databases))
	assert.Equal(t, uint64(len(databases)), status.EngineCache.Created)
	assert.Positive(t, status.EngineCache.Hits)
	edited := 0
	for _, p := range status.Plans {
		if p.Version > 1 {
			edited++
		}
	}
	assert.Len(t, status.Plans, len(plans))
	assert.Positive(t, edited)
}
