package peers

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/oncecache"
)

// theirOtter returns a cache of otter that is stopped when the row ends.
func theirOtter(t *testing.T, o otter.Options[string, int]) *otter.Cache[string, int] {
	t.Helper()
	c, err := otter.New(&o)
	require.NoError(t, err)
	t.Cleanup(func() { c.StopAllGoroutines(); synctest.Wait() })
	return c
}

func otterHas(c *otter.Cache[string, int], k string) bool {
	_, ok := c.GetEntryQuietly(k)
	return ok
}

func otterLen(c *otter.Cache[string, int]) (n int) {
	c.CleanUp()
	for range c.All() {
		n++
	}
	return n
}

// counting is a loader that makes 1, then 2, and so on.
func counting(calls *int) func(context.Context, string) (int, error) {
	return func(context.Context, string) (int, error) { *calls++; return *calls, nil }
}

var otterRows = []row{
	{"get", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{})
		var theirs, ours int
		c := ourCache(t, oncecache.Config[string, int]{Create: counting(&ours)})
		for range 2 {
			v, err := peer.Get(t.Context(), "k", otter.LoaderFunc[string, int](counting(&theirs)))
			require.NoError(t, err)
			assert.Equal(t, 1, v)
			v, err = c.Load(t.Context(), "k")
			require.NoError(t, err)
			assert.Equal(t, 1, v)
			v, err = c.GetOrCreateContext(t.Context(), "k", counting(&ours))
			require.NoError(t, err)
			assert.Equal(t, 1, v)
		}
		assert.Equal(t, []int{1, 1}, []int{theirs, ours})
	}},
	{"bulk-get", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{}), ourCache(t, oncecache.Config[string, int]{})
		peer.Set("a", 1)
		c.Set("a", 1)
		load := func(_ context.Context, keys []string) (map[string]int, error) {
			assert.ElementsMatch(t, []string{"b", "c"}, keys)
			return map[string]int{"b": 2}, nil // and c is left out
		}
		theirs, err := peer.BulkGet(t.Context(), []string{"a", "b", "c"}, otter.BulkLoaderFunc[string, int](load))
		require.NoError(t, err)
		ours, err := c.GetOrCreateMany(t.Context(), []string{"a", "b", "c"}, load)
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"a": 1, "b": 2}, ours)
		assert.Equal(t, theirs, ours)
	}},
	{"set", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{}), ourCache(t, oncecache.Config[string, int]{})
		v, inserted := peer.Set("k", 1)
		old, replaced := c.Set("k", 1)
		assert.Equal(t, []any{1, true, 0, false}, []any{v, inserted, old, replaced})
		v, inserted = peer.Set("k", 2)
		old, replaced = c.Set("k", 2)
		assert.Equal(t, []any{1, false, 1, true}, []any{v, inserted, old, replaced})
	}},
	{"set-if-absent", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{}), ourCache(t, oncecache.Config[string, int]{})
		for _, want := range []bool{true, false} {
			v, ok := peer.SetIfAbsent("k", 1)
			actual, stored := c.SetIfAbsent("k", 1)
			assert.Equal(t, []any{1, want, 1, want}, []any{v, ok, actual, stored})
		}
	}},
	{"get-if-present", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{}), ourCache(t, oncecache.Config[string, int]{})
		_, theirs := peer.GetIfPresent("k")
		_, ours := c.Get("k")
		assert.Equal(t, []bool{false, false}, []bool{theirs, ours})
		peer.Set("k", 1)
		c.Set("k", 1)
		v, _ := peer.GetIfPresent("k")
		w, _ := c.Get("k")
		assert.Equal(t, []int{1, 1}, []int{v, w})
	}},
	{"invalidate", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{}), ourCache(t, oncecache.Config[string, int]{})
		for _, k := range []string{"a", "b", "c"} {
			peer.Set(k, 1)
			c.Set(k, 1)
		}
		v, ok := peer.Invalidate("a")
		w, deleted := c.Delete("a")
		assert.Equal(t, []any{1, true, 1, true}, []any{v, ok, w, deleted})
		peer.InvalidateAll()
		assert.Equal(t, 2, c.Clear())
		assert.Equal(t, []int{0, 0}, []int{otterLen(peer), c.Len()})
	}},
	{"maximum-size", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{MaximumSize: 10}), ourCache(t, oncecache.Config[string, int]{MaxEntries: 10})
		for k := range 100 {
			peer.Set(strconv.Itoa(k), k)
			c.Set(strconv.Itoa(k), k)
			assert.LessOrEqual(t, c.Len(), 10) // always
		}
		assert.LessOrEqual(t, otterLen(peer), 10) // after CleanUp
		assert.Equal(t, 10, c.Len())
	}},
	{"maximum-weight", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{MaximumWeight: 100, Weigher: func(_ string, v int) uint32 { return uint32(v) }})
		c := ourCache(t, oncecache.Config[string, int]{MaxWeight: 100, Weight: func(_ string, v int) int64 { return int64(v) }})
		for k := range 20 {
			peer.Set(strconv.Itoa(k), 20)
			c.Set(strconv.Itoa(k), 20)
		}
		peer.CleanUp()
		assert.LessOrEqual(t, peer.WeightedSize(), uint64(100))
		assert.EqualValues(t, 100, c.Stats().Weight)
	}},
	{"set-maximum", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{MaximumSize: 10}), ourCache(t, oncecache.Config[string, int]{MaxEntries: 10})
		for k := range 10 {
			peer.Set(strconv.Itoa(k), k)
			c.Set(strconv.Itoa(k), k)
		}
		peer.SetMaximum(3)
		require.NoError(t, c.SetMaxEntries(3))
		assert.Equal(t, 3, c.Len())
		assert.LessOrEqual(t, otterLen(peer), 3)
	}},
	{"expiry-writing", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{ExpiryCalculator: otter.ExpiryWriting[string, int](time.Hour)})
		c := ourCache(t, oncecache.Config[string, int]{TTL: time.Hour})
		for _, left := range []bool{true, false} {
			peer.Set("k", 1)
			c.Set("k", 1)
			time.Sleep(59 * time.Minute)
			_, _ = peer.GetIfPresent("k") // which prolongs nothing
			_, _ = c.Get("k")
			assert.Equal(t, []bool{true, true}, []bool{otterHas(peer, "k"), has(c, "k")})
			if left {
				continue // and set again, which does
			}
			time.Sleep(2 * time.Minute)
			assert.Equal(t, []bool{false, false}, []bool{otterHas(peer, "k"), has(c, "k")})
		}
	}},
	{"expiry-writing-func", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{
			ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, int]) time.Duration { return time.Duration(e.Value) }),
		})
		c := ourCache(t, oncecache.Config[string, int]{TTLFunc: func(_ string, v int) time.Duration { return time.Duration(v) }})
		for k, ttl := range map[string]time.Duration{"minute": time.Minute, "hour": time.Hour} {
			peer.Set(k, int(ttl))
			c.Set(k, int(ttl))
		}
		time.Sleep(2 * time.Minute)
		for k, want := range map[string]bool{"minute": false, "hour": true} {
			assert.Equal(t, []bool{want, want}, []bool{otterHas(peer, k), has(c, k)})
		}
	}},
	{"expiry-accessing", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{ExpiryCalculator: otter.ExpiryAccessing[string, int](time.Hour)})
		c := ourCache(t, oncecache.Config[string, int]{IdleTimeout: time.Hour})
		peer.Set("k", 1)
		c.Set("k", 1)
		for range 5 {
			time.Sleep(59 * time.Minute)
			_, theirs := peer.GetIfPresent("k")
			_, ours := c.Get("k")
			assert.Equal(t, []bool{true, true}, []bool{theirs, ours})
		}
		time.Sleep(time.Hour + 1)
		assert.False(t, otterHas(peer, "k"))
		time.Sleep(31 * time.Minute) // ours may come half of the time later
		assert.False(t, has(c, "k"))
	}},
	{"refresh-writing", func(t *testing.T) {
		const fresh, stale = 5 * time.Minute, 24 * time.Hour
		var theirs, ours int
		load := otter.LoaderFunc[string, int](counting(&theirs))
		peer := theirOtter(t, otter.Options[string, int]{
			ExpiryCalculator:  otter.ExpiryWriting[string, int](stale),
			RefreshCalculator: otter.RefreshWriting[string, int](fresh),
		})
		c := ourCache(t, oncecache.Config[string, int]{TTL: stale, RenewAhead: stale - fresh, Create: counting(&ours)})
		both := func(want int) {
			t.Helper()
			v, err := peer.Get(t.Context(), "k", load)
			require.NoError(t, err)
			w, err := c.Load(t.Context(), "k")
			require.NoError(t, err)
			synctest.Wait()
			assert.Equal(t, []int{want, want}, []int{v, w})
		}
		both(1)
		time.Sleep(fresh - time.Second)
		both(1)
		assert.Equal(t, []int{1, 1}, []int{theirs, ours})
		time.Sleep(time.Second + time.Millisecond)
		both(1) // and another is made in the background
		both(2)
		assert.Equal(t, []int{2, 2}, []int{theirs, ours})
	}},
	{"refresh", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{RefreshCalculator: otter.RefreshWriting[string, int](time.Hour)})
		c := ourCache(t, oncecache.Config[string, int]{})
		peer.Set("k", 1)
		c.Set("k", 1)
		next := func(context.Context, string) (int, error) { return 2, nil }
		r := <-peer.Refresh(t.Context(), "k", otter.LoaderFunc[string, int](next))
		v, err := c.Refresh(t.Context(), "k", func(_ context.Context, _ string, old int, exists bool) (int, error) {
			assert.Equal(t, []any{1, true}, []any{old, exists})
			return 2, nil
		})
		assert.Equal(t, []any{2, 2}, []any{r.Value, v})
		assert.Equal(t, []error{nil, nil}, []error{r.Err, err})
	}},
	{"compute", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{}), ourCache(t, oncecache.Config[string, int]{})
		peer.Set("k", 0)
		c.Set("k", 0)
		for range 3 {
			go peer.Compute("k", func(old int, _ bool) (int, otter.ComputeOp) { return old + 1, otter.WriteOp })
			go c.Refresh(t.Context(), "k", func(_ context.Context, _ string, old int, _ bool) (int, error) {
				time.Sleep(time.Second)
				return old + 1, nil
			})
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		v, _ := peer.GetIfPresent("k")
		w, _ := c.Get("k")
		assert.Equal(t, []int{3, 1}, []int{v, w}) // calls at a time share one function
	}},
	{"quietly", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{ExpiryCalculator: otter.ExpiryAccessing[string, int](time.Hour)})
		c := ourCache(t, oncecache.Config[string, int]{IdleTimeout: time.Hour})
		peer.Set("k", 1)
		c.Set("k", 1)
		for range 20 {
			time.Sleep(5 * time.Minute)
			peer.GetEntryQuietly("k")
			c.Peek("k")
			c.Info("k")
		}
		assert.Equal(t, []bool{false, false}, []bool{otterHas(peer, "k"), has(c, "k")})
	}},
	{"entry", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{ExpiryCalculator: otter.ExpiryWriting[string, int](time.Hour)})
		c := ourCache(t, oncecache.Config[string, int]{TTL: time.Hour})
		peer.Set("k", 1)
		c.Set("k", 1)
		end := time.Now().Add(time.Hour)
		time.Sleep(time.Minute)
		e, _ := peer.GetEntry("k")
		i, _ := c.Info("k")
		assert.True(t, e.ExpiresAt().Equal(end), "%v", e.ExpiresAt())
		assert.True(t, i.Expires.Equal(end), "%v", i.Expires)
	}},
	{"on-deletion", func(t *testing.T) {
		var theirs, ours removals
		peer := theirOtter(t, otter.Options[string, int]{
			ExpiryCalculator: otter.ExpiryWriting[string, int](time.Hour),
			OnDeletion:       func(e otter.DeletionEvent[string, int]) { theirs.add(fmt.Sprint(e.Value, " ", e.Cause)) },
		})
		c := ourCache(t, oncecache.Config[string, int]{
			TTL:      time.Hour,
			OnRemove: func(_ string, v int, why oncecache.Reason, _ error) { ours.add(fmt.Sprint(v, " ", why)) },
		})
		peer.Set("k", 1)
		c.Set("k", 1)
		peer.Set("k", 2)
		c.Set("k", 2)
		peer.Invalidate("k")
		c.Delete("k")
		peer.Set("k", 3)
		c.Set("k", 3)
		time.Sleep(2 * time.Hour)
		peer.CleanUp()
		assert.Equal(t, []string{"1 Replacement", "2 Invalidation", "3 Expiration"}, theirs.sorted())
		assert.Equal(t, []string{"1 Replaced", "2 Deleted", "3 Expired"}, ours.sorted())
	}},
	{"stats", func(t *testing.T) {
		peer := theirOtter(t, otter.Options[string, int]{StatsRecorder: stats.NewCounter()})
		c := ourCache(t, oncecache.Config[string, int]{RecordStats: true})
		peer.GetIfPresent("k")
		c.Get("k")
		peer.Set("k", 1)
		c.Set("k", 1)
		for range 3 {
			peer.GetIfPresent("k")
			c.Get("k")
		}
		assert.Equal(t, []uint64{3, 1}, []uint64{peer.Stats().Hits, peer.Stats().Misses})
		assert.Equal(t, []uint64{3, 1}, []uint64{c.Stats().Hits, c.Stats().Misses})
	}},
	{"caller-leaves", func(t *testing.T) {
		peer, c := theirOtter(t, otter.Options[string, int]{}), ourCache(t, oncecache.Config[string, int]{})
		load := func(calls *int) func(ctx context.Context, _ string) (int, error) {
			return func(ctx context.Context, _ string) (int, error) {
				*calls++
				select {
				case <-ctx.Done():
					return 0, ctx.Err()
				case <-time.After(time.Minute):
					return 7, nil
				}
			}
		}
		var theirs, ours int
		hasty := func(i int) context.Context {
			if i > 0 {
				return t.Context()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		them := crowd(2, func(i int) (int, error) { return peer.Get(hasty(i), "k", otter.LoaderFunc[string, int](load(&theirs))) })
		us := crowd(2, func(i int) (int, error) { return c.GetOrCreateContext(hasty(i), "k", load(&ours)) })
		assert.Equal(t, []string{hasError, hasValue}, them)
		assert.Equal(t, them, us)
		assert.Equal(t, []int{2, 1}, []int{theirs, ours}) // otter begins anew, ours goes on
	}},
}
