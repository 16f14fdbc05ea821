//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
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
