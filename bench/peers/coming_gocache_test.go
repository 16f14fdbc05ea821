package peers

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	gocache "github.com/patrickmn/go-cache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/oncecache"
)

// besideGoCache returns a cache of go-cache beside ours, with the same time to live. Its janitor does
// not run, as that ends with a garbage collection only.
func besideGoCache(t *testing.T, ttl time.Duration) (*gocache.Cache, *oncecache.Cache[string, int]) {
	t.Helper()
	return gocache.New(ttl, 0), ourCache(t, oncecache.Config[string, int]{TTL: ttl})
}

// replace is Replace for ours.
func replace(c *oncecache.Cache[string, int], k string, v int) error {
	_, err := c.Refresh(context.Background(), k, func(_ context.Context, _ string, _ int, exists bool) (int, error) {
		if !exists {
			return 0, oncecache.ErrNotFound
		}
		return v, nil
	})
	return err
}

var goCacheRows = []row{
	{"new", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		peer.SetDefault("k", 1)
		c.Set("k", 1)
		time.Sleep(59 * time.Minute)
		v, theirs := peer.Get("k")
		w, ours := c.Get("k")
		assert.Equal(t, []any{1, true, 1, true}, []any{v, theirs, w, ours})
		time.Sleep(2 * time.Minute)
		_, theirs = peer.Get("k")
		_, ours = c.Get("k")
		assert.Equal(t, []bool{false, false}, []bool{theirs, ours})
	}},
	{"cleanup", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		peer.Set("k", 1, gocache.DefaultExpiration)
		c.Set("k", 1)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		assert.Equal(t, []int{1, 0}, []int{peer.ItemCount(), c.Len()}) // until the janitor comes
		peer.DeleteExpired()
		assert.Equal(t, 0, peer.ItemCount())
	}},
	{"set", func(t *testing.T) {
		peer, c := gocache.New(gocache.NoExpiration, 0), ourCache(t, byItself())
		peer.Set("minute", 1, time.Minute)
		c.Set("minute", lasting{1, time.Minute})
		peer.Set("ever", 1, gocache.NoExpiration)
		c.Set("ever", lasting{1, math.MaxInt64})
		time.Sleep(24 * time.Hour)
		for k, want := range map[string]bool{"minute": false, "ever": true} {
			_, theirs := peer.Get(k)
			_, ours := c.Get(k)
			assert.Equal(t, []bool{want, want}, []bool{theirs, ours})
		}
	}},
	{"add", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		for _, want := range []bool{true, false} {
			err := peer.Add("k", 1, gocache.DefaultExpiration)
			_, stored := c.SetIfAbsent("k", 1)
			assert.Equal(t, []bool{want, want}, []bool{err == nil, stored})
		}
	}},
	{"replace", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		assert.Error(t, peer.Replace("k", 2, gocache.DefaultExpiration))
		assert.ErrorIs(t, replace(c, "k", 2), oncecache.ErrNotFound)
		peer.SetDefault("k", 1)
		c.Set("k", 1)
		assert.NoError(t, peer.Replace("k", 2, gocache.DefaultExpiration))
		assert.NoError(t, replace(c, "k", 2))
		v, _ := peer.Get("k")
		w, _ := c.Get("k")
		assert.Equal(t, []any{2, 2}, []any{v, w})
	}},
	{"get-with-expiration", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		peer.SetDefault("k", 1)
		c.Set("k", 1)
		_, end, _ := peer.GetWithExpiration("k")
		info, _ := c.Info("k")
		assert.True(t, end.Equal(info.Expires), "%v, %v", end, info.Expires)
	}},
	{"increment", func(t *testing.T) {
		type counter struct{ n int } // with an atomic.Int64 if several goroutines change it
		peer := gocache.New(time.Hour, 0)
		c := ourCache(t, oncecache.Config[string, *counter]{TTL: time.Hour})
		for range 3 {
			_ = peer.Add("k", 0, gocache.DefaultExpiration)
			require.NoError(t, peer.Increment("k", 2))
			n, err := c.GetOrCreate("k", func() (*counter, error) { return new(counter), nil })
			require.NoError(t, err)
			n.n += 2
		}
		v, _ := peer.Get("k")
		w, _ := c.Get("k")
		assert.Equal(t, []any{6, 6}, []any{v, w.n})
	}},
	{"delete", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		for _, k := range []string{"a", "b", "c"} {
			peer.SetDefault(k, 1)
			c.Set(k, 1)
		}
		peer.Delete("a")
		c.Delete("a")
		assert.Equal(t, []int{2, 2}, []int{peer.ItemCount(), c.Len()})
		peer.Flush()
		c.Clear()
		assert.Equal(t, []int{0, 0}, []int{peer.ItemCount(), c.Len()})
	}},
	{"items", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		theirs, ours := map[string]int{}, map[string]int{}
		for v, k := range []string{"a", "b", "c"} {
			peer.SetDefault(k, v)
			c.Set(k, v)
		}
		for k, i := range peer.Items() {
			theirs[k] = i.Object.(int)
		}
		for k, v := range c.All() {
			ours[k] = v
		}
		assert.Equal(t, map[string]int{"a": 0, "b": 1, "c": 2}, ours)
		assert.Equal(t, theirs, ours)
	}},
	{"on-evicted", func(t *testing.T) {
		var theirs, ours removals
		peer := gocache.New(time.Hour, 0)
		peer.OnEvicted(func(k string, v any) { theirs.add(fmt.Sprint(k, v)) })
		c := ourCache(t, oncecache.Config[string, int]{
			TTL:      time.Hour,
			OnRemove: func(k string, v int, why oncecache.Reason, _ error) { ours.add(fmt.Sprint(k, v, " ", why)) },
		})
		set := func(k string, v int) {
			peer.SetDefault(k, v)
			c.Set(k, v)
		}
		set("a", 1)
		set("a", 2) // which is told by ours only
		peer.Delete("a")
		c.Delete("a")
		set("b", 3)
		time.Sleep(2 * time.Hour)
		peer.DeleteExpired()
		set("c", 4)
		peer.Flush() // likewise
		c.Clear()
		assert.Equal(t, []string{"a2", "b3"}, theirs.sorted())
		assert.Equal(t, []string{"a1 Replaced", "a2 Deleted", "b3 Expired", "c4 Deleted"}, ours.sorted())
	}},
	{"creates", func(t *testing.T) {
		peer, c := besideGoCache(t, time.Hour)
		var theirs, ours int
		crowd(3, func(int) (int, error) {
			if v, ok := peer.Get("k"); ok {
				return v.(int), nil
			}
			v, err := slowly(&theirs, seven)()
			peer.SetDefault("k", v)
			return v, err
		})
		crowd(3, func(int) (int, error) { return c.GetOrCreate("k", slowly(&ours, seven)) })
		assert.Equal(t, []int{3, 1}, []int{theirs, ours})
	}},
}
