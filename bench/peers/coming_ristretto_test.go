package peers

import (
	"strconv"
	"testing"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/oncecache"
)

// theirRistretto returns a cache of ristretto that is closed when the row ends.
func theirRistretto(t *testing.T, c ristretto.Config[string, int]) *ristretto.Cache[string, int] {
	t.Helper()
	c.NumCounters, c.BufferItems, c.IgnoreInternalCost = 1000, 64, true
	cache, err := ristretto.NewCache(&c)
	require.NoError(t, err)
	t.Cleanup(cache.Close)
	return cache
}

// weighing are settings of ours in which a value weighs what it is.
func weighing(most int64) oncecache.Config[string, int] {
	return oncecache.Config[string, int]{MaxWeight: most, Weight: func(_ string, v int) int64 { return int64(v) }}
}

func ristrettoLen(c *ristretto.Cache[string, int], keys int) (n int) {
	c.Wait()
	for k := range keys {
		if _, ok := c.Get(strconv.Itoa(k)); ok {
			n++
		}
	}
	return n
}

var ristrettoRows = []row{
	{"max-cost", func(t *testing.T) {
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100, Cost: func(v int) int64 { return int64(v) }})
		c := ourCache(t, weighing(100))
		for k := range 40 {
			peer.Set(strconv.Itoa(k), 10, 0)
			c.Set(strconv.Itoa(k), 10)
		}
		assert.LessOrEqual(t, ristrettoLen(peer, 40), 10)
		assert.Equal(t, 10, c.Len())
	}},
	{"set-is-seen", func(t *testing.T) {
		end := make(chan struct{})
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100, Cost: func(int) int64 { <-end; return 1 }})
		c := ourCache(t, weighing(100))
		require.True(t, peer.Set("k", 1, 0))
		c.Set("k", 1)
		_, theirs := peer.Get("k")
		_, ours := c.Get("k")
		assert.Equal(t, []bool{false, true}, []bool{theirs, ours})
		close(end)
		peer.Wait()
		_, theirs = peer.Get("k")
		assert.True(t, theirs)
	}},
	{"too-heavy", func(t *testing.T) {
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100})
		c := ourCache(t, weighing(100))
		peer.Set("k", 101, 101)
		c.Set("k", 101)
		peer.Wait()
		_, theirs := peer.Get("k")
		_, ours := c.Get("k")
		assert.Equal(t, []bool{false, false}, []bool{theirs, ours})
	}},
	{"ttl", func(t *testing.T) {
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100})
		c := ourCache(t, byItself())
		for k, ttl := range map[string]time.Duration{"minute": time.Minute, "hour": time.Hour} {
			peer.SetWithTTL(k, 1, 1, ttl)
			c.Set(k, lasting{1, ttl})
		}
		peer.Wait()
		time.Sleep(2 * time.Minute)
		for k, want := range map[string]bool{"minute": false, "hour": true} {
			_, theirs := peer.Get(k)
			_, ours := c.Get(k)
			assert.Equal(t, []bool{want, want}, []bool{theirs, ours})
		}
	}},
	{"get-ttl", func(t *testing.T) {
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100})
		c := ourCache(t, oncecache.Config[string, int]{TTL: time.Hour})
		peer.SetWithTTL("k", 1, 1, time.Hour)
		c.Set("k", 1)
		peer.Wait()
		time.Sleep(time.Minute)
		left, _ := peer.GetTTL("k")
		info, _ := c.Info("k")
		assert.Equal(t, []time.Duration{59 * time.Minute, 59 * time.Minute}, []time.Duration{left, time.Until(info.Expires)})
	}},
	{"del", func(t *testing.T) {
		peer, c := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100}), ourCache(t, weighing(100))
		for k := range 3 {
			peer.Set(strconv.Itoa(k), 1, 1)
			c.Set(strconv.Itoa(k), 1)
		}
		peer.Wait()
		peer.Del("0")
		c.Delete("0")
		assert.Equal(t, []int{2, 2}, []int{ristrettoLen(peer, 3), c.Len()})
		peer.Clear()
		c.Clear()
		assert.Equal(t, []int{0, 0}, []int{ristrettoLen(peer, 3), c.Len()})
	}},
	{"on-exit", func(t *testing.T) {
		var theirs, ours removals
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100, OnExit: func(v int) { theirs.add(strconv.Itoa(v)) }})
		config := weighing(100)
		config.Close = func(_ string, v int) error { ours.add(strconv.Itoa(v)); return nil }
		c := ourCache(t, config)
		for v := 1; v <= 2; v++ { // the second replaces the first
			peer.Set("k", v, 1)
			c.Set("k", v)
			peer.Wait()
		}
		peer.Del("k")
		c.Delete("k")
		peer.Set("k", 101, 101) // too heavy
		c.Set("k", 101)
		peer.Wait()
		assert.Equal(t, []string{"0", "1", "101", "2"}, theirs.sorted()) // a zero value with each Del
		assert.Equal(t, []string{"1", "101", "2"}, ours.sorted())
	}},
	{"in-use", func(t *testing.T) {
		var theirs, ours removals
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100, OnExit: func(v int) { theirs.add(strconv.Itoa(v)) }})
		config := weighing(100)
		config.Close = func(_ string, v int) error { ours.add(strconv.Itoa(v)); return nil }
		c := ourCache(t, config)
		peer.Set("k", 1, 1)
		c.Set("k", 1)
		peer.Wait()
		_, _ = peer.Get("k") // and it is used from now on
		lease, err := c.Acquire(t.Context(), "k", nil1)
		require.NoError(t, err)
		peer.Del("k")
		c.Delete("k")
		assert.Contains(t, theirs.sorted(), "1")
		assert.Empty(t, ours.sorted())
		lease.Release()
		assert.Equal(t, []string{"1"}, ours.sorted())
	}},
	{"update-max-cost", func(t *testing.T) {
		peer, c := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100}), ourCache(t, weighing(100))
		for k := range 10 {
			peer.Set(strconv.Itoa(k), 10, 10)
			c.Set(strconv.Itoa(k), 10)
		}
		peer.Wait()
		peer.UpdateMaxCost(30)
		require.NoError(t, c.SetMaxWeight(30))
		assert.Equal(t, []int{10, 3}, []int{ristrettoLen(peer, 10), c.Len()}) // theirs with the next Set
	}},
	{"metrics", func(t *testing.T) {
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100, Metrics: true})
		c := ourCache(t, oncecache.Config[string, int]{RecordStats: true})
		peer.Get("k")
		c.Get("k")
		peer.Set("k", 1, 1)
		c.Set("k", 1)
		peer.Wait()
		peer.Get("k")
		c.Get("k")
		assert.Equal(t, []uint64{1, 1}, []uint64{peer.Metrics.Hits(), peer.Metrics.Misses()})
		assert.Equal(t, []uint64{1, 1}, []uint64{c.Stats().Hits, c.Stats().Misses})
	}},
	{"creates", func(t *testing.T) {
		peer := theirRistretto(t, ristretto.Config[string, int]{MaxCost: 100})
		c := ourCache(t, oncecache.Config[string, int]{})
		var theirs, ours int
		crowd(3, func(int) (int, error) {
			if v, ok := peer.Get("k"); ok {
				return v, nil
			}
			v, err := slowly(&theirs, seven)()
			peer.Set("k", v, 1)
			return v, err
		})
		crowd(3, func(int) (int, error) { return c.GetOrCreate("k", slowly(&ours, seven)) })
		assert.Equal(t, []int{3, 1}, []int{theirs, ours})
	}},
}
