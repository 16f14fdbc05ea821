//go:build !modelcheck

package oncecache_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// A value that expires is told as that, whether the timer removes it, or another call meets
// it first, and gives its weight back.
func TestExpiredValuesAreTold(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		ttl    time.Duration
		remove func(*oncecache.Cache[string, int])
	}{
		"the timer":        {time.Second, func(*oncecache.Cache[string, int]) { time.Sleep(2 * time.Second) }},
		"at once":          {0, func(*oncecache.Cache[string, int]) {}},
		"Delete of it":     {0, func(c *oncecache.Cache[string, int]) { c.Delete("k") }},
		"Get and Set":      {-1, func(c *oncecache.Cache[string, int]) { c.Get("k"); c.Set("l", 1); c.Delete("l") }},
		"Sweep":            {time.Nanosecond, func(c *oncecache.Cache[string, int]) { time.Sleep(time.Millisecond); oncecache.Sweep(c) }},
		"another creation": {0, func(c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(makes(3))); c.Delete("k") }},
	} {
		for _, closes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				told := map[int][]oncecache.Reason{}
				config := oncecache.Config[string, int]{
					MaxWeight: 100, Weight: func(_ string, v int) int64 { return int64(v) },
					TTLFunc: func(_ string, v int) time.Duration {
						if v == 7 {
							return tt.ttl
						}
						return math.MaxInt64
					},
					OnRemove: func(_ string, v int, why oncecache.Reason, _ error) {
						mu.Lock()
						defer mu.Unlock()
						told[v] = append(told[v], why)
					},
				}
				if closes {
					config.Close = func(string, int) error { return nil }
				}
				c := oncecache.MustNew(config)
				if v, err := c.GetOrCreate("k", with(7)); v != 7 || err != nil {
					t.Errorf("%s: %d, %v", name, v, err)
				}
				tt.remove(c)
				synctest.Wait()
				if v, ok := c.Get("k"); ok {
					t.Errorf("%s: Get finds %d", name, v)
				}
				synctest.Wait()
				mu.Lock()
				reasons := told[7]
				mu.Unlock()
				if len(reasons) != 1 || reasons[0] != oncecache.ReasonExpired {
					t.Errorf("%s: told of %v", name, reasons)
				}
				if s := c.Stats(); s.Expired != 1 || s.Evicted != 0 || s.Idle != 0 || s.Weight != 0 {
					t.Errorf("%s: %+v", name, s)
				}
				if err := c.Close(ctx); err != nil || oncecache.Pending(c) != 0 {
					t.Errorf("%s: %v, %d pending", name, err, oncecache.Pending(c))
				}
			})
		}
	}
}

// A look-up that meets an expired value is a miss. A renewal is no look-up, and is a
// creation for OnCreate.
func TestExpiryIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var created atomic.Int64
		c := oncecache.MustNew(oncecache.Config[string, int]{
			TTLFunc:     func(string, int) time.Duration { return time.Minute },
			Renew:       func(_ context.Context, _ string, old int) (int, error) { time.Sleep(time.Second); return old + 1, nil },
			RenewAhead:  10 * time.Second,
			OnCreate:    func(string, time.Duration, error) { created.Add(1) },
			RecordStats: true,
		})
		c.GetOrCreate("k", with(1)) // a miss
		time.Sleep(55 * time.Second)
		c.Get("k") // a hit, which starts a renewal
		time.Sleep(2 * time.Second)
		if v, ok := c.Get("k"); v != 2 || !ok { // a hit
			t.Error(v, ok)
		}
		time.Sleep(2 * time.Minute)
		if v, ok := c.Get("k"); ok { // a miss
			t.Error(v)
		}
		s := c.Stats()
		if s.Hits != 2 || s.Misses != 2 || s.Created != 2 || created.Load() != 2 || s.Renewals != 1 || s.CreateTime != time.Second || s.Expired != 1 {
			t.Errorf("%+v, %d created", s, created.Load())
		}
		c.Close(t.Context())
	})
}

// What Renew makes has a weight of its own. If that is too much, it is not kept, and what
// it should replace leaves, as after Refresh.
func TestRenewedValuesAreWeighed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{
			MaxWeight: 10, Weight: func(_ string, v int) int64 { return int64(v) },
			TTLFunc:    func(string, int) time.Duration { return time.Minute },
			Renew:      func(_ context.Context, _ string, old int) (int, error) { return old + 4, nil },
			RenewAhead: 10 * time.Second,
		})
		c.Set("k", 3)
		for _, want := range []int64{7, 0} { // 11 is too much
			time.Sleep(55 * time.Second)
			c.Get("k")
			synctest.Wait()
			if got := c.Stats().Weight; got != want || oncecache.Places(c) != c.Len() {
				t.Errorf("weight %d, want %d", got, want)
			}
		}
		if c.Len() != 0 {
			t.Error(c.Len())
		}
		c.Close(t.Context())
	})
}
