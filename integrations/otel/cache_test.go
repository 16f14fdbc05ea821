package latchotel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/latchfree/latchfree/oncecache"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// What takes time is measured in seconds, and each count has its own number.
func TestCacheTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meter, collect := reader(t)
		onCreate := first(latchotel.Creations[int](meter, "c"))
		c := oncecache.MustNew(oncecache.Config[int, int]{
			RecordStats: true, MaxWeight: 80, Weight: func(_, v int) int64 { return int64(v) }, Close: func(int, int) error { return nil },
			CreateTimeout: time.Hour, IdleTimeout: 48 * time.Hour, OnCreate: onCreate,
			TTLFunc: func(k, _ int) time.Duration { return time.Duration(k) * time.Hour },
		})
		first(latchotel.Cache(meter, "c", c, latchotel.CacheOptions{Flights: true}))
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
		m := first(collect())
		all := samples(t, m)
		includes(t, all, map[string]float64{
			"cache.entries cache.name=c": 8, "cache.weight cache.name=c": 80, "cache.created cache.name=c": 16,
			"cache.create.failures cache.name=c": 11, "cache.create.panics cache.name=c": 9, "cache.create.timeouts cache.name=c": 10,
			"cache.removals cache.name=c cache.reason=Evicted": 7, "cache.removals cache.name=c cache.reason=Idle": 4,
			"cache.removals cache.name=c cache.reason=Expired": 1, "cache.value_closes cache.name=c": 12,
			"cache.hits cache.name=c": 17, "cache.misses cache.name=c": 42, "cache.joined cache.name=c": 5,
			"cache.create.in_flight cache.name=c": 2, "cache.create.waiting cache.name=c": 3, "cache.create.oldest cache.name=c": 6,
			"cache.create.duration cache.name=c cache.result=ok": 16, "cache.create.duration cache.name=c cache.result=error": 11,
			"cache.create.duration cache.name=c cache.result=panic": 9,
		})
		for _, one := range m.ScopeMetrics[0].Metrics {
			if h, ok := one.Data.(metricdata.Histogram[float64]); ok {
				sum := 0.0
				for _, p := range h.DataPoints {
					sum += p.Sum
				}
				require.Equal(t, 10*3600+3.0, sum)
			}
		}
	})
}
