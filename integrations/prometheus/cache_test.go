package latchprom_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCache(t *testing.T) {
	creations := latchprom.NewCreations("c", 60)
	c := oncecache.MustNew(oncecache.Config[int, int]{
		RecordStats: true, MaxEntries: 1, OnCreate: latchprom.OnCreate[int](creations),
		Close: func(int, int) error { return nil },
	})
	get := scrape(t, creations, latchprom.Cache("c", c, latchprom.CacheOptions{Flights: true}))
	one := func() (int, error) { return 1, nil }
	for range 3 {
		_, err := c.GetOrCreate(1, one)
		require.NoError(t, err)
	}
	_, err := c.GetOrCreate(2, one)
	require.NoError(t, err)
	_, err = c.GetOrCreate(3, func() (int, error) { return 0, errDown })
	require.Error(t, err)
	require.Panics(t, func() { _, _ = c.GetOrCreate(4, func() (int, error) { panic("boom") }) })
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_, _ = c.GetOrCreate(4, func() (int, error) { runtime.Goexit(); return 0, nil })
	}()
	<-exited

	started, finish, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.GetOrCreate(5, func() (int, error) { close(started); <-finish; return 0, errDown })
	}()
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		_, _ = c.Wait(ctx, 5)
	}()
	for c.Stats().Joined == 0 {
		runtime.Gosched()
	}
	_, body := get()
	for _, line := range []string{
		`latchfree_cache_entries{cache="c"} 1`,
		`latchfree_cache_hits_total{cache="c"} 2`,
		`latchfree_cache_misses_total{cache="c"} 7`,
		`latchfree_cache_joined_total{cache="c"} 1`,
		`latchfree_cache_created_total{cache="c"} 2`,
		`latchfree_cache_create_failures_total{cache="c"} 1`,
		`latchfree_cache_create_panics_total{cache="c"} 2`,
		`latchfree_cache_create_timeouts_total{cache="c"} 0`,
		`latchfree_cache_removals_total{cache="c",reason="Evicted"} 1`,
		`latchfree_cache_removals_total{cache="c",reason="Idle"} 0`,
		`latchfree_cache_removals_total{cache="c",reason="Expired"} 0`,
		`latchfree_cache_creations_in_flight{cache="c"} 1`,
		`latchfree_cache_waiting_calls{cache="c"} 1`,
		`latchfree_cache_create_duration_seconds_bucket{cache="c",result="ok",le="60"} 2`,
		`latchfree_cache_create_duration_seconds_count{cache="c",result="error"} 1`,
		`latchfree_cache_create_duration_seconds_count{cache="c",result="panic"} 2`,
	} {
		assert.Contains(t, body, line+"\n")
	}
	assert.Regexp(t, `latchfree_cache_oldest_creation_seconds\{cache="c"\} [0-9.]*[1-9]`, body)
	close(finish)
	cancel()
	<-ended
	<-joined

	// Counters never go down.
	c.Delete(2)
	c.Clear()
	require.NoError(t, c.Close(context.Background()))
	_, body = get()
	for _, line := range []string{
		`latchfree_cache_entries{cache="c"} 0`,
		`latchfree_cache_hits_total{cache="c"} 2`,
		`latchfree_cache_created_total{cache="c"} 2`,
		`latchfree_cache_create_failures_total{cache="c"} 2`,
		`latchfree_cache_value_closes_total{cache="c"} 2`,
		`latchfree_cache_oldest_creation_seconds{cache="c"} 0`,
	} {
		assert.Contains(t, body, line+"\n")
	}
}

func TestCacheRemovals(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{
		TTL: func(int, int) time.Duration { return 0 }, MaxWeight: 10, Weight: func(int, v int) int64 { return int64(v) },
	})
	c.Set(1, 7)
	c.Sweep()
	plain := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: 10, Weight: func(int, v int) int64 { return int64(v) }})
	plain.Set(1, 7)
	_, body := scrape(t, latchprom.Cache("ttl", c, latchprom.CacheOptions{}), latchprom.Cache("plain", plain, latchprom.CacheOptions{}))()
	assert.Contains(t, body, `latchfree_cache_removals_total{cache="ttl",reason="Expired"} 1`)
	assert.Contains(t, body, `latchfree_cache_weight{cache="plain"} 7`)
}
