//go:build !modelcheck

package oncecache_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/latchfree/latchfree/oncecache"
)

// collect collects garbage until there is what the test waits for.
func collect(t *testing.T, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatal("not collected")
		}
	}
}

// Reported bug 33, Otter, ccache: a goroutine per cache keeps it alive.
// A cache that nobody has any more goes, with what is in it, though
// nobody has closed it, its timers are set, and its functions refer to it.
func TestT33_DroppedCachesAreCollected(t *testing.T) {
	type cache = oncecache.Cache[string, *instance]
	type config = oncecache.Config[string, *instance]
	for name, make := range map[string]func() *cache{
		"zero":        func() *cache { return new(cache) },
		"MaxEntries":  func() *cache { return oncecache.MustNew(config{MaxEntries: 10}) },
		"IdleTimeout": func() *cache { return oncecache.MustNew(config{IdleTimeout: time.Hour}) },
		"all": func() *cache {
			var c *cache
			c = oncecache.MustNew(config{
				MaxEntries: 10, IdleTimeout: time.Hour, CreateTimeout: time.Hour,
				Close:        func(string, *instance) error { c.Len(); return nil },
				ErrorTTLFunc: func(string, error) time.Duration { c.Len(); return time.Hour },
				OnLeak:       func(string, []byte) { c.Len() },
			})
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			cached, value := func() (weak.Pointer[cache], weak.Pointer[instance]) {
				c := make()
				create := func(context.Context, string) (*instance, error) { return new(instance), nil }
				c.GetOrCreate("failed", func() (*instance, error) { return nil, errRefused })
				c.GetOrCreateContext(t.Context(), "made", create)
				c.Refresh(t.Context(), "made", anew(create))
				c.Delete("made")
				l, err := c.Acquire(t.Context(), "leased", create)
				if err != nil {
					t.Fatal(err)
				}
				l.Release()
				forgotten, err := c.Acquire(t.Context(), "leased", create)
				if err != nil {
					t.Fatal(err)
				}
				return weak.Make(c), weak.Make(forgotten.Value())
			}()
			collect(t, func() bool { return cached.Value() == nil && value.Value() == nil })
		})
	}
}

// Reported bug 33, Otter, ccache: a goroutine per cache keeps it alive.
// A bubble ends although its cache is not closed and has a timer.
func TestT33_BubblesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: time.Hour, CreateTimeout: time.Hour})
		c.Set("k", 1)
		if v, err := c.GetOrCreateContext(t.Context(), "l", makes(2)); v != 2 || err != nil {
			t.Error(v, err)
		}
	})
}

// Reported bug 32, Kubernetes: a process-wide cache only grows.
// A cache with a bound does not grow, whatever is asked of it:
// values, failures that are kept for ever, batches and refreshes.
func TestT32_BoundedCachesDoNotGrow(t *testing.T) {
	const bound = 50
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: bound, ErrorTTLFunc: func(int, error) time.Duration { return -1 }})
	r := rand.New(rand.NewPCG(32, 0))
	same := func(_ context.Context, k int) (int, error) { return k, nil }
	for range stressRounds() {
		switch k := r.IntN(10_000); r.IntN(8) {
		case 0, 1:
			c.GetOrCreate(k, failing)
		case 2:
			c.GetOrCreateMany(context.Background(), []int{k, k + 1, k + 2}, squares)
		case 3:
			c.Refresh(context.Background(), k, anew(same))
		case 4:
			c.Set(k, k)
		case 5:
			c.SetIfAbsent(k, k)
		case 6:
			c.Delete(k)
		default:
			c.GetOrCreateContext(context.Background(), k, same)
		}
		if _, entries := oncecache.Creating(c); entries > bound {
			t.Fatalf("%d entries, want %d at most", entries, bound)
		}
	}
	if n := oncecache.Places(c); n > bound || n == 0 {
		t.Errorf("the order has %d places", n)
	}
}

// Reported bug 32, Kubernetes: a process-wide cache only grows.
// And one that nobody uses is empty after a while.
func TestT32_IdleCachesAreEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{
			IdleTimeout: time.Minute, ErrorTTLFunc: func(int, error) time.Duration { return time.Second },
		})
		for k := range 1000 {
			c.Set(2*k, k)
			c.GetOrCreate(2*k+1, failing)
		}
		time.Sleep(2 * time.Minute)
		if _, entries := oncecache.Creating(c); entries != 0 || oncecache.Places(c) != 0 {
			t.Errorf("%d entries, %d places in the order", entries, oncecache.Places(c))
		}
	})
}
