//go:build !modelcheck

package oncecache_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// SetIfAbsent returns the value that the key has then, whatever the key was, and stores its own only
// where there was none.
func TestSetIfAbsentActual(t *testing.T) {
	ctx := context.Background()
	closing := func(string, int) error { return nil }
	hour := config{TTL: time.Hour, Close: closing}
	refresh := func(c *oncecache.Cache[string, int]) {
		c.Set("k", 1)
		time.Sleep(45 * time.Minute)
		go c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return halfAnHour() }))
		synctest.Wait()
	}
	for name, tt := range map[string]struct {
		config
		before func(c *oncecache.Cache[string, int])
		actual int
		stored bool
		after  int // the value of the key then; 0: none
	}{
		"absent":       {hour, func(*oncecache.Cache[string, int]) {}, 7, true, 7},
		"of a zero":    {config{}, func(*oncecache.Cache[string, int]) {}, 7, true, 7},
		"present":      {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 1) }, 1, false, 1},
		"of the value": {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 7) }, 7, false, 7},
		"leased": {hour, func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(ctx, "k", makes(1))
			time.AfterFunc(time.Minute, l.Release)
		}, 1, false, 1},
		"created":       {hour, func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", with(1)) }, 1, false, 1},
		"being created": {hour, func(c *oncecache.Cache[string, int]) { go c.GetOrCreate("k", halfAnHour); synctest.Wait() }, 0, false, 0},
		"being created, and deleted": {hour, func(c *oncecache.Cache[string, int]) {
			go c.GetOrCreate("k", halfAnHour)
			synctest.Wait()
			c.Delete("k")
		}, 7, true, 7},
		"being refreshed": {hour, refresh, 1, false, 1},
		"being refreshed, and expired": {hour, func(c *oncecache.Cache[string, int]) {
			refresh(c)
			time.Sleep(15 * time.Minute)
			synctest.Wait()
		}, 0, false, 0},
		"being refreshed, and deleted": {hour, func(c *oncecache.Cache[string, int]) { refresh(c); c.Delete("k") }, 7, true, 7},
		"failed":                       {hour, func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", failing) }, 7, true, 7},
		"an error is kept": {config{ErrorTTL: -1}, func(c *oncecache.Cache[string, int]) {
			c.GetOrCreate("k", failing)
		}, 7, true, 7},
		"expired": {hour, func(c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
			time.Sleep(time.Hour)
			synctest.Wait()
		}, 7, true, 7},
		"expired at once": {config{TTLFunc: func(string, int) time.Duration { return 0 }}, func(c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
		}, 7, true, 0},
		"deleted": {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Delete("k") }, 7, true, 7},
		"deleted, and leased": {config{Close: closing, CloseBeforeCreate: true}, func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(ctx, "k", makes(1))
			c.Delete("k")
			time.AfterFunc(time.Minute, l.Release)
		}, 7, true, 7},
		"too heavy": {config{MaxWeight: 5, Weight: func(_ string, v int) int64 { return int64(v) }}, func(*oncecache.Cache[string, int]) {}, 0, false, 0},
		"too heavy beside a value": {config{MaxWeight: 5, Weight: func(_ string, v int) int64 { return int64(v) }},
			func(c *oncecache.Cache[string, int]) { c.Set("k", 1) }, 1, false, 1},
		"closed": {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Close(ctx) }, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(tt.config)
				tt.before(c)
				if actual, stored := c.SetIfAbsent("k", 7); actual != tt.actual || stored != tt.stored {
					t.Errorf("%d, %t, want %d, %t", actual, stored, tt.actual, tt.stored)
				}
				if v, ok := c.Peek("k"); v != tt.after || ok != (tt.after != 0) {
					t.Errorf("the key has %d, %t, want %d", v, ok, tt.after)
				}
				time.Sleep(24 * time.Hour)
				c.Close(ctx)
			})
		})
	}
}

// A key that holds a NaN is never there, and stores nothing.
func TestSetIfAbsentActualOfNaN(t *testing.T) {
	var c oncecache.Cache[float64, int]
	for range 2 {
		if actual, stored := c.SetIfAbsent(nan, 7); actual != 0 || stored {
			t.Errorf("%d, %t", actual, stored)
		}
	}
}

// A value that is not stored is not closed, and that which is there stays open.
func TestSetIfAbsentClosesNothing(t *testing.T) {
	c := oncecache.MustNew(config{Close: func(_ string, v int) error {
		if v != 1 {
			t.Errorf("%d is closed", v)
		}
		return nil
	}})
	c.Set("k", 1)
	if actual, stored := c.SetIfAbsent("k", 7); actual != 1 || stored {
		t.Errorf("%d, %t", actual, stored)
	}
	if n := c.Stats().Closed; n != 0 {
		t.Errorf("%d values are closed", n)
	}
	c.Close(t.Context())
	c.SetIfAbsent("k", 8)
	if n := c.Stats().Closed; n != 1 {
		t.Errorf("%d values are closed in the end", n)
	}
}

// Of many calls at once one stores its value, and all return that.
func TestSetIfAbsentAgrees(t *testing.T) {
	const calls = 8
	for name, settings := range map[string]config{
		"plain":      {},
		"Close":      {Close: func(string, int) error { return nil }},
		"MaxEntries": {MaxEntries: 10},
	} {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(settings)
			for range 50 {
				var actual [calls]int
				var wins atomic.Int32
				together(calls, func(i int) {
					v, stored := c.SetIfAbsent("k", i+1)
					if actual[i] = v; stored {
						if wins.Add(1); v != i+1 {
							t.Errorf("%d is stored instead of %d", v, i+1)
						}
					}
				})
				v, _ := c.Delete("k")
				for _, got := range actual {
					if got != v {
						t.Fatalf("the key has %d, and calls return %v", v, actual)
					}
				}
				if wins.Load() != 1 {
					t.Errorf("%d calls have stored their values", wins.Load())
				}
			}
		})
	}
}
