package latchprom_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/latchfree/latchfree/shardedregistry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

var errDown = errors.New("down")

// scrape serves the collectors over HTTP, and returns a function that scrapes them.
func scrape(t *testing.T, collectors ...prometheus.Collector) func() (status int, body string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		require.NoError(t, registry.Register(c))
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return func() (int, string) {
		response, err := http.Get(server.URL)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
}

// everything returns a collector of each kind, for instances that have been used.
func everything(t *testing.T) []prometheus.Collector {
	t.Helper()
	transitions := latchprom.NewTransitions("b")
	breaker := atomicbreaker.MustNew(atomicbreaker.Config{RecordTotals: true, OnStateChange: transitions.Count})
	breaker.Trip(0)
	groupTransitions := latchprom.NewGroupTransitions("g")
	group := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{RecordTotals: true}, OnStateChange: latchprom.CountKey[string](groupTransitions),
	})
	group.Trip("a", 0)
	creations := latchprom.NewCreations("c")
	cache := oncecache.MustNew(oncecache.Config[string, int]{RecordStats: true, OnCreate: latchprom.OnCreate[string](creations)})
	_, err := cache.GetOrCreate("k", func() (int, error) { return 1, nil })
	require.NoError(t, err)
	var registry shardedregistry.Registry[string, int]
	var tracker cowchangeset.Tracker[int]
	_, err = tracker.Start(context.Background())
	require.NoError(t, err)
	j, err := journal.Open[int](t.TempDir(), journal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return []prometheus.Collector{
		latchprom.Breaker("b", breaker), transitions, groupTransitions, latchprom.Group("g", group, latchprom.GroupOptions[string]{}),
		latchprom.Throttle("t", new(throttle.Throttle)), latchprom.RetryBudget("r", new(retrybudget.Budget)),
		latchprom.Cache("c", cache, latchprom.CacheOptions{Flights: true}), creations,
		latchprom.Registry("r", &registry), latchprom.Tracker("t", &tracker), latchprom.Journal("j", j),
	}
}

// different checks that numbers which a test tells apart are different.
func different(t *testing.T, numbers ...uint64) {
	t.Helper()
	slices.Sort(numbers)
	require.Len(t, slices.Compact(slices.Clone(numbers)), len(numbers), "%v", numbers)
}

// waiting returns how many calls wait for creations.
func waiting(c *oncecache.Cache[int, int]) (n int) {
	for f := range c.InFlight() {
		n += f.Waiting
	}
	return n
}
