package latchprom_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/prometheus/client_golang/prometheus"
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
	for c.Stats().Joined == 0 || waiting(c) == 0 {
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
		`latchfree_cache_create_in_flight{cache="c"} 1`,
		`latchfree_cache_create_waiting{cache="c"} 1`,
		`latchfree_cache_create_duration_seconds_bucket{cache="c",result="ok",le="60"} 2`,
		`latchfree_cache_create_duration_seconds_count{cache="c",result="error"} 1`,
		`latchfree_cache_create_duration_seconds_count{cache="c",result="panic"} 2`,
	} {
		assert.Contains(t, body, line+"\n")
	}
	assert.Regexp(t, `latchfree_cache_create_oldest_seconds\{cache="c"\} [0-9.]*[1-9]`, body)
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
		`latchfree_cache_create_oldest_seconds{cache="c"} 0`,
	} {
		assert.Contains(t, body, line+"\n")
	}
}

func TestCacheRemovals(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{
		TTLFunc: func(int, int) time.Duration { return 0 }, MaxWeight: 10, Weight: func(int, v int) int64 { return int64(v) },
	})
	c.Set(1, 7)
	plain := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: 10, Weight: func(int, v int) int64 { return int64(v) }})
	plain.Set(1, 7)
	_, body := scrape(t, latchprom.Cache("ttl", c, latchprom.CacheOptions{}), latchprom.Cache("plain", plain, latchprom.CacheOptions{}))()
	assert.Contains(t, body, `latchfree_cache_removals_total{cache="ttl",reason="Expired"} 1`)
	assert.Contains(t, body, `latchfree_cache_weight{cache="plain"} 7`)
}

// What takes time is measured in seconds, and each count has its own number.
func TestCacheTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		creations := latchprom.NewCreations("c")
		c := oncecache.MustNew(oncecache.Config[int, int]{
			RecordStats: true, MaxWeight: 80, Weight: func(_, v int) int64 { return int64(v) }, Close: func(int, int) error { return nil },
			CreateTimeout: time.Hour, IdleTimeout: 48 * time.Hour, OnCreate: latchprom.OnCreate[int](creations),
			TTLFunc: func(k, _ int) time.Duration { return time.Duration(k) * time.Hour },
		})
		ctx := context.Background()
		for k := range 5 { // one expires after a day, four are idle after two
			c.Set(100*k+24, 1)
		}
		time.Sleep(72 * time.Hour)
		synctest.Wait()
		for k := range 10 {
			_, err := c.GetOrCreateContext(ctx, 1000+k, func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			require.Error(t, err)
		}
		_, err := c.GetOrCreate(2000, func() (int, error) { time.Sleep(3 * time.Second); return 1, nil })
		require.NoError(t, err)
		_, err = c.Refresh(ctx, 2000, func(context.Context, int, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
		require.NoError(t, err)

		_, err = c.GetOrCreate(2001, func() (int, error) { return 0, oncecache.ErrNotModified })
		require.Error(t, err) // there is nothing that could stay
		for range 9 {
			require.Panics(t, func() { _, _ = c.GetOrCreate(2002, func() (int, error) { panic("boom") }) })
		}
		for k := range 14 { // which makes room seven times
			_, err := c.GetOrCreate(2100+k, func() (int, error) { return 10, nil })
			require.NoError(t, err)
		}
		for range 17 {
			c.Get(2111)
		}

		// Two creations are under way, and three calls wait for the older one.
		release := make(chan struct{})
		defer close(release)
		slow := func() (int, error) { <-release; return 1, nil }
		for _, k := range []int{3000, 3000, 3000, 3000, 3001} {
			go c.GetOrCreate(k, slow)
			synctest.Wait()
			time.Sleep(1200 * time.Millisecond)
		}
		leave, cancel := context.WithCancel(ctx)
		for range 2 { // they join, and wait no more
			go c.Wait(leave, 3001)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(creations, latchprom.Cache("c", c, latchprom.CacheOptions{Flights: true}))
		families, err := registry.Gather()
		require.NoError(t, err)
		got := make(map[string]float64)
		for _, f := range families {
			for _, m := range f.Metric {
				name := strings.TrimPrefix(f.GetName(), "latchfree_cache_")
				for _, l := range m.Label[1:] {
					name += " " + l.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
				got["count of "+name] = float64(m.GetHistogram().GetSampleCount())
			}
		}
		for name, want := range map[string]float64{
			"entries": 8, "weight": 80, "created_total": 16, "create_failures_total": 11, "create_panics_total": 9, "create_timeouts_total": 10,
			"removals_total Evicted": 7, "removals_total Idle": 4, "removals_total Expired": 1, "value_closes_total": 12,
			"hits_total": 17, "misses_total": 42, "joined_total": 5, "create_in_flight": 2, "create_waiting": 3, "create_oldest_seconds": 6,
			"create_duration_seconds ok": 3, "create_duration_seconds error": 10 * 3600,
			"count of create_duration_seconds ok": 16, "count of create_duration_seconds error": 11, "count of create_duration_seconds panic": 9,
		} {
			assert.Contains(t, got, name)
			assert.Equal(t, want, got[name], name)
		}
	})
}
