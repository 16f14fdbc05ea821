//go:build !modelcheck

package oncecache_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// spin takes about n steps, without a clock.
func spin(n int) {
	var steps atomic.Int64
	for range n {
		steps.Add(1)
	}
}

// Reported bug 1, Otter, gocache, Moka, jellydator/ttlcache: created twice as the first value is stored.
// Callers who come just when the value is published get it, and
// create none. They come by all ways, some before, some during and some after.
func TestT1_StressArrivalsAtPublication(t *testing.T) {
	for round := range stressRounds() / 10 {
		var c oncecache.Cache[string, int]
		var made atomic.Int64
		create := func(context.Context, string) (int, error) {
			spin(rand.IntN(500))
			return int(made.Add(1)), nil
		}
		together(stressWorkers, func(worker int) {
			spin(worker * rand.IntN(400))
			if worker%2 == 1 {
				for {
					if _, ok := c.Get("k"); ok {
						break // it has just been published
					}
					runtime.Gosched()
				}
			}
			w := ways[rand.IntN(len(ways)-1)] // Refresh makes another one
			if v, err := w.ask(t.Context(), &c, "k", create); v != 1 || err != nil {
				t.Errorf("round %d: %s: %d, %v", round, w.name, v, err)
			}
		})
		if n := made.Load(); n != 1 {
			t.Fatalf("round %d: %d values made", round, n)
		}
	}
}

// Reported bug 35, uv, quick_cache: a wake-up comes before its waiter.
// T35 uv, quick_cache: whoever ends a creation, and however close that is to the
// moment at which others begin to wait, they are woken and get a value or an
// error.
func TestT35_StressWakeUps(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	type cache = oncecache.Cache[string, int]
	nothing := func(*cache, context.CancelFunc) {}
	for name, end := range map[string]struct {
		before func(c *cache, leave context.CancelFunc)
		how    func() (int, error)
	}{
		"value":   {nothing, with(1)},
		"error":   {nothing, failing},
		"panic":   {nothing, diskFull},
		"Goexit":  {nothing, exiting},
		"Set":     {func(c *cache, _ context.CancelFunc) { c.Set("k", 1) }, with(2)},
		"Delete":  {func(c *cache, _ context.CancelFunc) { c.Delete("k") }, with(2)},
		"Close":   {func(c *cache, _ context.CancelFunc) { c.Close(ended) }, with(2)},
		"timeout": {func(*cache, context.CancelFunc) { spin(2000) }, with(2)},
		"leaving": {func(_ *cache, leave context.CancelFunc) { leave() }, failing},
	} {
		t.Run(name, func(t *testing.T) {
			rounds := stressRounds() / 100
			if name == "panic" || name == "timeout" {
				rounds /= 4 // they are slow
			}
			for range rounds {
				config := oncecache.Config[string, int]{}
				if rand.IntN(2) == 0 {
					config.Close = func(string, int) error { return nil }
				}
				if name == "timeout" {
					config.CreateTimeout = time.Duration(rand.IntN(50)) * time.Microsecond
				}
				c := oncecache.MustNew(config)
				p, begun := make(chan func() (int, error)), make(chan struct{})
				ctx, leave := context.WithCancel(t.Context())
				owner := ways[rand.IntN(len(ways))]
				calls := []*call{startCall(func() (int, error) {
					return owner.ask(ctx, c, "k", func(context.Context, string) (int, error) {
						close(begun)
						return (<-p)()
					})
				})}
				<-begun
				for range stressWorkers {
					w := ways[rand.IntN(len(ways))]
					calls = append(calls, startCall(func() (int, error) { return w.ask(t.Context(), c, "k", makes(5)) }))
				}
				spin(rand.IntN(2000))
				end.before(c, leave)
				p <- end.how
				for _, k := range calls {
					select {
					case <-k.done:
						if r := k.result; (r.value == 0) == (r.err == nil && r.panicked == nil && !r.exited) {
							t.Fatalf("got %+v", r)
						}
					case <-time.After(time.Minute):
						t.Fatal("a caller is not woken")
					}
				}
				leave()
				c.Close(t.Context())
				// The timer may have woken the callers and not yet have counted.
				for start := time.Now(); ; runtime.Gosched() {
					creating, entries := oncecache.Creating(c)
					if creating == 0 && entries == 0 && oncecache.Pending(c) == 0 {
						break
					}
					if name != "timeout" || time.Since(start) > time.Minute {
						t.Fatalf("%d creations, %d entries, %d pending at the end", creating, entries, oncecache.Pending(c))
					}
				}
			}
		})
	}
}
