package peers

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/oncecache"
)

type ttlItem = ttlcache.Item[string, int]

// theirTTLCache returns a cache of ttlcache that works until the row ends.
func theirTTLCache(t *testing.T, o ...ttlcache.Option[string, int]) *ttlcache.Cache[string, int] {
	t.Helper()
	c := ttlcache.New(o...)
	go c.Start()
	synctest.Wait()
	t.Cleanup(c.Stop)
	return c
}

// loading is a Loader that keeps what the function makes; it tells nobody why there is no value.
func loading(create func() (int, error)) ttlcache.LoaderFunc[string, int] {
	return func(c *ttlcache.Cache[string, int], k string) *ttlItem {
		v, err := create()
		if err != nil {
			return nil
		}
		return c.Set(k, v, ttlcache.DefaultTTL)
	}
}

// ttlGet is Get as our methods return it.
func ttlGet(c *ttlcache.Cache[string, int], k string) (int, error) {
	if i := c.Get(k); i != nil {
		return i.Value(), nil
	}
	return 0, errCall
}

var ttlcacheRows = []row{
	{"touch", func(t *testing.T) {
		peer := theirTTLCache(t, ttlcache.WithTTL[string, int](time.Hour))
		c := ourCache(t, oncecache.Config[string, int]{IdleTimeout: time.Hour})
		peer.Set("k", 1, ttlcache.DefaultTTL)
		c.Set("k", 1)
		for i := range 5 {
			time.Sleep(59 * time.Minute)
			if i%2 == 0 {
				peer.Touch("k")
			} else {
				require.NotNil(t, peer.Get("k"))
			}
			_, ok := c.Get("k")
			require.True(t, ok)
		}
		time.Sleep(time.Hour + time.Second)
		assert.False(t, peer.Has("k"))
		time.Sleep(31 * time.Minute) // ours may come half of the time later
		assert.False(t, has(c, "k"))
	}},
	{"no-touch", func(t *testing.T) {
		peer := theirTTLCache(t, ttlcache.WithTTL[string, int](time.Hour), ttlcache.WithDisableTouchOnHit[string, int]())
		c := ourCache(t, oncecache.Config[string, int]{TTL: time.Hour})
		peer.Set("k", 1, ttlcache.DefaultTTL)
		c.Set("k", 1)
		time.Sleep(59 * time.Minute)
		require.NotNil(t, peer.Get("k"))
		_, ok := c.Get("k")
		require.True(t, ok)
		time.Sleep(2 * time.Minute)
		_, ok = c.Get("k")
		assert.Equal(t, []bool{true, false}, []bool{peer.Get("k") == nil, ok})
	}},
	{"set", func(t *testing.T) {
		peer, c := theirTTLCache(t), ourCache(t, byItself())
		peer.Set("minute", 1, time.Minute)
		c.Set("minute", lasting{1, time.Minute})
		peer.Set("ever", 1, ttlcache.NoTTL)
		c.Set("ever", lasting{1, math.MaxInt64})
		time.Sleep(24 * time.Hour)
		assert.Equal(t, []bool{false, false}, []bool{peer.Has("minute"), has(c, "minute")})
		assert.Equal(t, []bool{true, true}, []bool{peer.Has("ever"), has(c, "ever")})
	}},
	{"start", func(t *testing.T) {
		var theirs, ours removals
		peer := ttlcache.New(ttlcache.WithTTL[string, int](time.Hour))
		peer.OnEviction(func(context.Context, ttlcache.EvictionReason, *ttlItem) { theirs.add("k") })
		c := ourCache(t, oncecache.Config[string, int]{
			TTL: time.Hour, OnRemove: func(k string, _ int, _ oncecache.Reason, _ error) { ours.add(k) },
		})
		peer.Set("k", 1, ttlcache.DefaultTTL)
		c.Set("k", 1)
		time.Sleep(2 * time.Hour)
		assert.Empty(t, theirs.sorted())
		assert.Equal(t, []string{"k"}, ours.sorted())
		peer.DeleteExpired()
		assert.Equal(t, []string{"k"}, theirs.sorted())
	}},
	{"capacity", func(t *testing.T) {
		peer := theirTTLCache(t, ttlcache.WithCapacity[string, int](10))
		c := ourCache(t, oncecache.Config[string, int]{MaxEntries: 10})
		for k := range 100 {
			peer.Set(strconv.Itoa(k), k, ttlcache.DefaultTTL)
			c.Set(strconv.Itoa(k), k)
		}
		assert.Equal(t, []int{10, 10}, []int{peer.Len(), c.Len()})
	}},
	{"max-cost", func(t *testing.T) {
		peer := theirTTLCache(t, ttlcache.WithMaxCost(100, func(i ttlcache.CostItem[string, int]) uint64 { return uint64(i.Value) }))
		c := ourCache(t, weighing(100))
		for k := range 20 {
			peer.Set(strconv.Itoa(k), 20, ttlcache.DefaultTTL)
			c.Set(strconv.Itoa(k), 20)
		}
		assert.Equal(t, []int{5, 5}, []int{peer.Len(), c.Len()})
	}},
	{"loader", func(t *testing.T) {
		var theirs, ours int
		peer := theirTTLCache(t, ttlcache.WithLoader[string, int](loading(slowly(&theirs, seven))))
		c := ourCache(t, oncecache.Config[string, int]{
			Create: func(context.Context, string) (int, error) { return slowly(&ours, seven)() },
		})
		crowd(3, func(int) (int, error) { return ttlGet(peer, "k") })
		crowd(3, func(int) (int, error) { return c.Load(t.Context(), "k") })
		assert.Equal(t, []int{3, 1}, []int{theirs, ours})
	}},
	{"suppressed-loader", func(t *testing.T) {
		var theirs, ours int
		load := ttlcache.NewSuppressedLoader[string, int](loading(slowly(&theirs, seven)), nil)
		peer := theirTTLCache(t, ttlcache.WithLoader[string, int](load))
		c := ourCache(t, oncecache.Config[string, int]{})
		crowd(3, func(int) (int, error) { return ttlGet(peer, "k") })
		crowd(3, func(int) (int, error) { return c.GetOrCreate("k", slowly(&ours, seven)) })
		assert.Equal(t, []int{1, 1}, []int{theirs, ours})
	}},
	{"keys-that-print-alike", func(t *testing.T) {
		var theirs, ours int
		load := ttlcache.LoaderFunc[any, int](func(c *ttlcache.Cache[any, int], k any) *ttlcache.Item[any, int] {
			v, _ := slowly(&theirs, seven)()
			return c.Set(k, v, ttlcache.DefaultTTL)
		})
		peer := ttlcache.New(ttlcache.WithLoader[any, int](ttlcache.NewSuppressedLoader[any, int](load, nil)))
		var c oncecache.Cache[any, int]
		keys := []any{1, "1"}
		crowd(2, func(i int) (int, error) { return peer.Get(keys[i]).Value(), nil })
		crowd(2, func(i int) (int, error) { return c.GetOrCreate(keys[i], slowly(&ours, seven)) })
		assert.Equal(t, []int{1, 2}, []int{theirs, ours}) // one has the other's value there
	}},
	{"loader-fails", func(t *testing.T) {
		peer := theirTTLCache(t, ttlcache.WithLoader[string, int](loading(failed)))
		c := ourCache(t, oncecache.Config[string, int]{Create: func(context.Context, string) (int, error) { return failed() }})
		assert.Nil(t, peer.Get("k"))
		_, err := c.Load(t.Context(), "k")
		assert.ErrorIs(t, err, errCall)
	}},
	{"get-or-set", func(t *testing.T) {
		peer, c := theirTTLCache(t), ourCache(t, oncecache.Config[string, int]{})
		for v := 1; v <= 2; v++ {
			i, found := peer.GetOrSet("k", v)
			actual, stored := c.SetIfAbsent("k", v)
			assert.Equal(t, []any{1, v == 2, 1, v == 1}, []any{i.Value(), found, actual, stored})
		}
	}},
	{"get-or-set-func", func(t *testing.T) {
		peer, c := theirTTLCache(t), ourCache(t, oncecache.Config[string, int]{})
		peer.Set("other", 1, ttlcache.DefaultTTL)
		c.Set("other", 1)
		var theirs, ours []string
		got := make(chan struct{})
		peer.GetOrSetFunc("k", func() int {
			go func() { peer.Get("other"); theirs = append(theirs, "the other key"); close(got) }()
			for range 1000 {
				runtime.Gosched() // a bubble does not wait for a mutex
			}
			theirs = append(theirs, "the function")
			return 7
		})
		<-got
		_, err := c.GetOrCreate("k", func() (int, error) {
			c.Get("other")
			ours = append(ours, "the other key", "the function")
			return 7, nil
		})
		require.NoError(t, err)
		assert.Equal(t, []string{"the function", "the other key"}, theirs) // it runs under the lock
		assert.Equal(t, []string{"the other key", "the function"}, ours)
	}},
	{"delete", func(t *testing.T) {
		peer, c := theirTTLCache(t), ourCache(t, oncecache.Config[string, int]{})
		for _, k := range []string{"a", "b", "c", "d"} {
			peer.Set(k, 1, ttlcache.DefaultTTL)
			c.Set(k, 1)
		}
		i, found := peer.GetAndDelete("a")
		old, deleted := c.Delete("a")
		assert.Equal(t, []any{1, true, 1, true}, []any{i.Value(), found, old, deleted})
		peer.Delete("b")
		c.Delete("b")
		assert.Equal(t, []int{2, 2}, []int{peer.Len(), c.Len()})
		peer.DeleteAll()
		c.Clear()
		assert.Equal(t, []int{0, 0}, []int{peer.Len(), c.Len()})
	}},
	{"expires-at", func(t *testing.T) {
		peer := theirTTLCache(t, ttlcache.WithTTL[string, int](time.Hour))
		c := ourCache(t, oncecache.Config[string, int]{TTL: time.Hour})
		i := peer.Set("k", 1, ttlcache.DefaultTTL)
		c.Set("k", 1)
		info, _ := c.Info("k")
		assert.True(t, i.ExpiresAt().Equal(info.Expires), "%v, %v", i.ExpiresAt(), info.Expires)
	}},
	{"on-eviction", func(t *testing.T) {
		var theirs, ours removals
		peer := theirTTLCache(t, ttlcache.WithTTL[string, int](time.Hour), ttlcache.WithCapacity[string, int](2))
		name := map[ttlcache.EvictionReason]string{
			ttlcache.EvictionReasonDeleted: "Deleted", ttlcache.EvictionReasonExpired: "Expired", ttlcache.EvictionReasonCapacityReached: "Evicted",
		}
		peer.OnEviction(func(_ context.Context, why ttlcache.EvictionReason, i *ttlItem) {
			theirs.add(fmt.Sprint(i.Key(), i.Value(), " ", name[why]))
		})
		c := ourCache(t, oncecache.Config[string, int]{
			TTL: time.Hour, MaxEntries: 2,
			OnRemove: func(k string, v int, why oncecache.Reason, _ error) { ours.add(fmt.Sprint(k, v, " ", why)) },
		})
		set := func(k string, v int) {
			peer.Set(k, v, ttlcache.DefaultTTL)
			c.Set(k, v)
		}
		set("a", 1)
		set("a", 2) // which is told by ours only
		set("b", 3)
		set("c", 4)
		peer.Delete("b")
		c.Delete("b")
		time.Sleep(2 * time.Hour)
		assert.Equal(t, []string{"a2 Evicted", "b3 Deleted", "c4 Expired"}, theirs.sorted())
		assert.Equal(t, []string{"a1 Replaced", "a2 Evicted", "b3 Deleted", "c4 Expired"}, ours.sorted())
	}},
	{"metrics", func(t *testing.T) {
		peer, c := theirTTLCache(t), ourCache(t, oncecache.Config[string, int]{RecordStats: true})
		peer.Get("k")
		c.Get("k")
		peer.Set("k", 1, ttlcache.DefaultTTL)
		c.Set("k", 1)
		peer.Get("k")
		c.Get("k")
		assert.Equal(t, []uint64{1, 1}, []uint64{peer.Metrics().Hits, peer.Metrics().Misses})
		assert.Equal(t, []uint64{1, 1}, []uint64{c.Stats().Hits, c.Stats().Misses})
	}},
}
