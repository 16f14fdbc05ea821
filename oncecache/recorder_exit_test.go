//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// exitsIn runs f, which an OnCreate function is to end, on a goroutine of its own.
func exitsIn(t *testing.T, f func()) {
	t.Helper()
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	if returned {
		t.Error("OnCreate has not ended its goroutine")
	}
}

// exiters returns a cache whose OnCreate ends the goroutine of its caller, and how many values are closed.
func exiters(c oncecache.Config[string, int]) (*oncecache.Cache[string, int], *atomic.Int32) {
	closed := new(atomic.Int32)
	c.Close = func(string, int) error { closed.Add(1); return nil }
	c.OnCreate = func(string, time.Duration, error) { runtime.Goexit() }
	return oncecache.MustNew(c), closed
}

// wantAllClosed closes c, which must not wait for a lease.
func wantAllClosed(t *testing.T, c *oncecache.Cache[string, int], closed *atomic.Int32, want int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := c.Close(ctx)
	var pending *oncecache.PendingError
	if errors.As(err, &pending) || err == nil || !strings.Contains(err.Error(), "OnCreate function called runtime.Goexit") {
		t.Errorf("Close returns %v", err)
	}
	if n := closed.Load(); n != want {
		t.Errorf("%d values are closed, want %d", n, want)
	}
}

// A caller of Acquire whose goroutine ends in OnCreate leaves no lease.
func TestOnCreateEndsAcquire(t *testing.T) {
	ctx := context.Background() // so that the function runs on the caller's goroutine
	for name, meanwhile := range map[string]func(c *oncecache.Cache[string, int]){
		"nothing":   func(*oncecache.Cache[string, int]) {},
		"Delete":    func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"Set":       func(c *oncecache.Cache[string, int]) { c.Set("k", 7) },
		"a timeout": func(*oncecache.Cache[string, int]) { time.Sleep(time.Hour) },
	} {
		for _, alone := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var settings oncecache.Config[string, int]
					settings.CloseBeforeCreate, settings.CreateTimeout = alone, time.Minute
					c, closed := exiters(settings)
					exitsIn(t, func() {
						c.Acquire(ctx, "k", func(context.Context, string) (int, error) { meanwhile(c); return 1, nil })
					})
					want := int32(1)
					if name == "Set" {
						want = 2
					}
					wantAllClosed(t, c, closed, want)
				})
			})
		}
	}
}

// Another caller of that creation has its lease.
func TestOnCreateEndsAcquireBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, closed := exiters(oncecache.Config[string, int]{})
		var joined oncecache.Lease[string, int]
		exitsIn(t, func() {
			c.Acquire(context.Background(), "k", func(context.Context, string) (int, error) {
				go func() {
					var err error
					joined, err = c.Acquire(context.Background(), "k", func(context.Context, string) (int, error) { return 2, nil })
					if err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				return 1, nil
			})
		})
		synctest.Wait()
		c.Delete("k")
		if v, n := joined.Value(), closed.Load(); v != 1 || n != 0 {
			t.Errorf("the lease of the other caller has %d; %d values are closed", v, n)
		}
		joined.Release()
		wantAllClosed(t, c, closed, 1)
	})
}

// Without a Close function, a lease would only keep the value from being evicted.
func TestOnCreateEndsAcquireInABoundedCache(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[string, int]{
		MaxEntries: 1, OnCreate: func(string, time.Duration, error) { runtime.Goexit() },
	})
	exitsIn(t, func() {
		c.Acquire(context.Background(), "k", func(context.Context, string) (int, error) { return 1, nil })
	})
	c.Set("l", 2)
	c.Set("m", 3)
	if _, ok := c.Get("k"); ok {
		t.Error("the value stays as if it was leased")
	}
}

// Likewise a call of GetOrCreateMany, whatever it has found, created and waited for.
func TestOnCreateEndsGetOrCreateMany(t *testing.T) {
	for _, alone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var settings oncecache.Config[string, int]
			settings.CloseBeforeCreate = alone
			c, closed := exiters(settings)
			c.Set("there", 0)
			proceed := make(chan struct{})
			go c.Acquire(context.Background(), "of another", func(context.Context, string) (int, error) { <-proceed; return 5, nil })
			synctest.Wait()
			go func() { time.Sleep(time.Minute); close(proceed) }()
			exitsIn(t, func() {
				c.GetOrCreateMany(context.Background(), []string{"there", "a", "of another", "b"}, func(_ context.Context, keys []string) (map[string]int, error) {
					c.Delete("b")
					return map[string]int{"a": 1, "b": 2}, nil
				})
			})
			time.Sleep(time.Hour)
			synctest.Wait()
			wantAllClosed(t, c, closed, 4)
		})
	}
}
