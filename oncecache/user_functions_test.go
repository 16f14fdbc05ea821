//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// useAll calls every method that a function of the user may call which holds k up.
func useAll(t *testing.T, c *oncecache.Cache[string, int], k string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.Len()
	c.Stats()
	c.Get(k)
	for range c.All() {
	}
	for range c.Keys() {
	}
	for range c.InFlight() {
	}
	oncecache.Sweep(c)
	c.Delete(k)
	oncecache.CompareAndDelete(c, k, -1)
	for _, w := range ways {
		if _, err := w.ask(ctx, c, "used by "+k, makes(harmless)); err != nil && err != oncecache.ErrClosed {
			t.Errorf("%s of another key: %v", w.name, err)
		}
	}
	c.Wait(ctx, "used by "+k)
	c.SetIfAbsent("set by "+k, harmless)
	c.Set("set by "+k, harmless)
}

const harmless = -2 // what useAll makes, and closes without ado

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// A Close function may use the cache that calls it, whoever is
// the one that closes.
func TestT25_CloseFunctionsUseTheCache(t *testing.T) {
	for name, remove := range map[string]func(c *oncecache.Cache[string, int]){
		"Delete":           func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"Set":              func(c *oncecache.Cache[string, int]) { c.Set("k", harmless) },
		"CompareAndDelete": func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) },
		"Discard": func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(context.Background(), "k", makes(1))
			l.Discard()
		},
		"Release": func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(context.Background(), "k", makes(1))
			c.Delete("k")
			l.Release()
		},
		"Refresh": func(c *oncecache.Cache[string, int]) { c.Refresh(context.Background(), "k", anew(makes(harmless))) },
		"a batch": func(c *oncecache.Cache[string, int]) {
			c.GetOrCreateMany(context.Background(), []string{"l"}, func(context.Context, []string) (map[string]int, error) {
				return map[string]int{"l": harmless, "k": 3}, nil
			})
		},
		"eviction": func(c *oncecache.Cache[string, int]) {
			for i := range 4 {
				c.Set(fmt.Sprint(i), harmless)
			}
		},
		"idleness": func(*oncecache.Cache[string, int]) { time.Sleep(2 * time.Hour) },
		"Sweep": func(c *oncecache.Cache[string, int]) {
			for range 4 {
				time.Sleep(time.Hour / 4)
				oncecache.Sweep(c)
			}
		},
		"a value that comes too late": func(c *oncecache.Cache[string, int]) {
			c.GetOrCreate("l", func() (int, error) { c.Delete("l"); return 2, nil })
		},
		"Close": func(*oncecache.Cache[string, int]) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *oncecache.Cache[string, int]
				var used atomic.Int32
				c = oncecache.MustNew(oncecache.Config[string, int]{
					MaxEntries: 3, IdleTimeout: time.Hour, CreateTimeout: time.Hour,
					Close: func(k string, v int) error {
						if v != harmless {
							useAll(t, c, k)
							used.Add(1)
						}
						return nil
					},
				})
				c.Set("k", 1)
				remove(c)
				synctest.Wait()
				if name != "Close" && used.Load() == 0 {
					t.Error("nothing was closed")
				}
				if err := c.Close(t.Context()); err != nil || used.Load() == 0 {
					t.Errorf("%d were closed, %v", used.Load(), err)
				}
				if creating, entries := oncecache.Creating(c); creating != 0 || entries != 0 || oncecache.Pending(c) != 0 {
					t.Errorf("%d creations, %d entries, %d pending at the end", creating, entries, oncecache.Pending(c))
				}
			})
		})
	}
}

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// The same of ErrorTTL, also for the key of which it is asked.
func TestT25_ErrorTTLUsesTheCache(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			asked := 0
			c = oncecache.MustNew(oncecache.Config[string, int]{
				MaxEntries: 3, IdleTimeout: time.Hour,
				ErrorTTLFunc: func(k string, _ error) time.Duration { asked++; useAll(t, c, k); return time.Minute },
			})
			fails := func(context.Context, string) (int, error) { return failing() }
			if v, err := w.ask(t.Context(), c, "k", fails); v != 0 || err != errRefused {
				t.Errorf("%s: %d, %v", w.name, v, err)
			}
			if asked != 1 {
				t.Errorf("%s: asked %d times", w.name, asked)
			}
			wantAbsent(t, c, "k")
			if creating, entries := oncecache.Creating(c); creating != 0 || entries != c.Len() {
				t.Errorf("%s: %d creations, %d entries, %d values", w.name, creating, entries, c.Len()) // useAll has deleted k
			}
		})
	}
}

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// The same of OnLeak, on a goroutine of the runtime.
func TestT25_OnLeakUsesTheCache(t *testing.T) {
	var c *oncecache.Cache[string, int]
	var told atomic.Bool
	c = oncecache.MustNew(oncecache.Config[string, int]{
		Close:  func(string, int) error { return nil },
		OnLeak: func(k string, _ []byte) { useAll(t, c, k); told.Store(true) },
	})
	func() {
		l, err := c.Acquire(t.Context(), "k", makes(1))
		if err != nil || l.Value() != 1 {
			t.Fatal(err)
		}
	}()
	collect(t, told.Load)
	wantAbsent(t, c, "k")
}

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// The same of loop bodies.
func TestT25_LoopsUseTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		flight := begin(t, &c, "k")
		c.Set("l", 1)
		n := 0
		for f := range c.InFlight() {
			useAll(t, &c, f.Key)
			n++
		}
		for k := range c.All() {
			useAll(t, &c, k)
			n++
		}
		if n < 2 {
			t.Errorf("%d keys", n)
		}
		flight.end <- with(2)
		wantAll(t, []*call{flight.call}, result{value: 2}) // forgotten
		wantAbsent(t, &c, "k")
	})
}

// Reported bug 24, Caffeine, jellydator/ttlcache, xsync: a slow load holds up other keys.
// Whatever function of the user is slow, it delays no other key:
// 2000 are created, leased, refreshed, evicted, closed and deleted meanwhile.
func TestT24_SlowFunctionsDelayNobody(t *testing.T) {
	for name, slow := range map[string]func(c *oncecache.Cache[string, int], wait func()){
		"create": func(c *oncecache.Cache[string, int], wait func()) {
			c.GetOrCreate("slow", func() (int, error) { wait(); return 1, nil })
		},
		"create on a goroutine of its own": func(c *oncecache.Cache[string, int], wait func()) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c.Acquire(ctx, "slow", func(context.Context, string) (int, error) { wait(); return 1, nil })
		},
		"create of many": func(c *oncecache.Cache[string, int], wait func()) {
			c.GetOrCreateMany(context.Background(), []string{"slow", "slower"}, func(context.Context, []string) (map[string]int, error) {
				wait()
				return nil, nil
			})
		},
		"create of Refresh": func(c *oncecache.Cache[string, int], wait func()) {
			c.Set("slow", 1)
			c.Refresh(context.Background(), "slow", anew(func(context.Context, string) (int, error) { wait(); return 1, nil }))
		},
		"Close function": func(c *oncecache.Cache[string, int], _ func()) {
			c.Set("slow", 9)
			c.Delete("slow")
		},
		"Close function of what is evicted": func(c *oncecache.Cache[string, int], _ func()) {
			c.Set("slow", 9)
			for i := range 1000 {
				c.Set(fmt.Sprint("more ", i), 1)
			}
		},
		"ErrorTTL": func(c *oncecache.Cache[string, int], _ func()) { c.GetOrCreate("slow", failing) },
		"a loop": func(c *oncecache.Cache[string, int], wait func()) {
			c.Set("slow", 1)
			for range c.All() {
				wait()
				return
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun, end := make(chan struct{}), make(chan struct{})
			wait := func() { close(begun); <-end }
			c := oncecache.MustNew(oncecache.Config[string, int]{
				MaxEntries: 500, IdleTimeout: time.Hour, CreateTimeout: time.Hour,
				Close: func(_ string, v int) error {
					if v == 9 {
						wait()
					}
					return nil
				},
				ErrorTTLFunc: func(string, error) time.Duration { wait(); return time.Hour },
			})
			held := startCall(func() (int, error) { slow(c, wait); return 0, nil })
			<-begun
			within(t, time.Minute, func() {
				for i := range 2000 {
					k, w := fmt.Sprint("other ", i), ways[i%len(ways)]
					if v, err := w.ask(t.Context(), c, k, makes(1)); v != 1 || err != nil {
						t.Errorf("%s: %d, %v", w.name, v, err)
					}
					if i%3 == 0 {
						c.Set(k, 2)
					}
					if i%5 == 0 {
						c.Delete(k)
					}
					if i%100 == 0 {
						c.Refresh(t.Context(), k, anew(makes(3)))
						oncecache.Sweep(c)
						c.Stats()
						for range c.Keys() {
						}
					}
				}
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				if err := c.Close(ctx); !errors.Is(err, context.Canceled) && name != "a loop" {
					t.Errorf("Close returns %v while a function runs", err)
				}
			})
			close(end)
			held.wait(t)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

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

// A create function depends once on a creation that it begins and waits for: the same dependence twice
// would be two calls that can give up because of one cycle.
func TestACallDependsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		p := newPilot()
		of := make(chan context.Context, 1)
		outer := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), "outer", func(ctx context.Context, _ string) (int, error) {
				of <- ctx
				return c.GetOrCreateContext(ctx, "inner", p.create)
			})
		})
		ctx := <-of
		synctest.Wait()
		if n := oncecache.Dependences(ctx); n != 1 {
			t.Errorf("it depends %d times", n)
		}
		p.end <- with(1)
		wantAll(t, []*call{outer}, result{value: 1})
	})
}
