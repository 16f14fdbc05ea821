package peers

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/oncecache"
)

// besideLRU returns a cache of golang-lru for n values beside ours.
func besideLRU(t *testing.T, n int) (*lru.Cache[string, int], *oncecache.Cache[string, int]) {
	t.Helper()
	peer, err := lru.New[string, int](n)
	require.NoError(t, err)
	return peer, ourCache(t, oncecache.Config[string, int]{MaxEntries: n})
}

// expirableLRU is made outside of bubbles, as its goroutine never ends.
var expirableLRU = expirable.NewLRU[string, int](10, nil, time.Hour)

var lruRows = []row{
	{"new", func(t *testing.T) {
		peer, c := besideLRU(t, 2)
		for _, k := range []string{"a", "b"} {
			peer.Add(k, 1)
			c.Set(k, 1)
		}
		peer.Get("a")
		c.Get("a")
		peer.Add("c", 1)
		c.Set("c", 1)
		assert.ElementsMatch(t, []string{"a", "c"}, peer.Keys())
		assert.Equal(t, []string{"a", "c"}, sortedKeys(c))
	}},
	{"scan", func(t *testing.T) {
		peer, c := besideLRU(t, 100)
		for k := range 50 {
			k := strconv.Itoa(k)
			peer.Add(k, 1)
			c.Set(k, 1)
			peer.Get(k)
			c.Get(k)
		}
		for k := range 200 { // each once
			peer.Add("once "+strconv.Itoa(k), 1)
			c.Set("once "+strconv.Itoa(k), 1)
		}
		theirs, ours := 0, 0
		for k := range 50 {
			if peer.Contains(strconv.Itoa(k)) {
				theirs++
			}
			if has(c, strconv.Itoa(k)) {
				ours++
			}
		}
		assert.Equal(t, []int{0, 50}, []int{theirs, ours})
	}},
	{"expirable", func(t *testing.T) {
		peer, c := expirableLRU, ourCache(t, oncecache.Config[string, int]{MaxEntries: 10, TTL: time.Hour})
		peer.Add("k", 1)
		c.Set("k", 1)
		time.Sleep(59 * time.Minute)
		_, theirs := peer.Get("k")
		_, ours := c.Get("k")
		assert.Equal(t, []bool{true, true}, []bool{theirs, ours})
		time.Sleep(2 * time.Minute)
		_, theirs = peer.Get("k")
		_, ours = c.Get("k")
		assert.Equal(t, []bool{false, false}, []bool{theirs, ours})
	}},
	{"add", func(t *testing.T) {
		peer, c := besideLRU(t, 2)
		evicted := peer.Add("k", 1)
		_, replaced := c.Set("k", 1)
		assert.Equal(t, []bool{false, false}, []bool{evicted, replaced})
		evicted = peer.Add("k", 2)
		old, replaced := c.Set("k", 2)
		assert.Equal(t, []any{false, 1, true}, []any{evicted, old, replaced})
		peer.Add("l", 1)
		c.Set("l", 1)
		evicted = peer.Add("m", 1)
		_, replaced = c.Set("m", 1)
		assert.Equal(t, []bool{true, false}, []bool{evicted, replaced})
		assert.EqualValues(t, 1, c.Stats().Evicted)
	}},
	{"peek", func(t *testing.T) {
		peer, c := besideLRU(t, 2)
		for _, k := range []string{"a", "b"} {
			peer.Add(k, 1)
			c.Set(k, 1)
		}
		v, _ := peer.Peek("a")
		w, _ := c.Peek("a")
		assert.Equal(t, []int{1, 1}, []int{v, w})
		assert.True(t, peer.Contains("a"))
		peer.Add("c", 1)
		c.Set("c", 1)
		assert.Equal(t, []bool{false, false}, []bool{peer.Contains("a"), has(c, "a")})
	}},
	{"peek-or-add", func(t *testing.T) {
		peer, c := besideLRU(t, 2)
		_, found, _ := peer.PeekOrAdd("k", 1)
		actual, stored := c.SetIfAbsent("k", 1)
		assert.Equal(t, []any{false, 1, true}, []any{found, actual, stored})
		previous, found, _ := peer.PeekOrAdd("k", 2)
		actual, stored = c.SetIfAbsent("k", 2)
		assert.Equal(t, []any{1, true, 1, false}, []any{previous, found, actual, stored})
		found, _ = peer.ContainsOrAdd("k", 3)
		assert.True(t, found)
	}},
	{"remove", func(t *testing.T) {
		peer, c := besideLRU(t, 10)
		for _, k := range []string{"a", "b", "c"} {
			peer.Add(k, 1)
			c.Set(k, 1)
		}
		_, deleted := c.Delete("a")
		assert.Equal(t, []bool{true, true}, []bool{peer.Remove("a"), deleted})
		peer.Purge()
		c.Clear()
		assert.Equal(t, []int{0, 0}, []int{peer.Len(), c.Len()})
	}},
	{"resize", func(t *testing.T) {
		peer, c := besideLRU(t, 10)
		for k := range 10 {
			peer.Add(strconv.Itoa(k), k)
			c.Set(strconv.Itoa(k), k)
		}
		assert.Equal(t, 7, peer.Resize(3))
		require.NoError(t, c.SetMaxEntries(3))
		assert.EqualValues(t, 7, c.Stats().Evicted)
		assert.Equal(t, []string{"7", "8", "9"}, peer.Keys())
		assert.Equal(t, peer.Keys(), sortedKeys(c))
	}},
	{"keys", func(t *testing.T) {
		peer, c := besideLRU(t, 10)
		for _, k := range []string{"b", "a", "c"} {
			peer.Add(k, 1)
			c.Set(k, 1)
		}
		assert.Equal(t, []string{"b", "a", "c"}, peer.Keys()) // from the oldest
		assert.Equal(t, []string{"a", "b", "c"}, sortedKeys(c))
		sum := 0
		for _, v := range c.All() {
			sum += v
		}
		assert.Equal(t, sum, len(peer.Values()))
	}},
	{"on-evict", func(t *testing.T) {
		var theirs, ours removals
		peer, err := lru.NewWithEvict(2, func(k string, _ int) { theirs.add(k) })
		require.NoError(t, err)
		c := ourCache(t, oncecache.Config[string, int]{
			MaxEntries: 2,
			OnRemove:   func(k string, _ int, why oncecache.Reason, _ error) { ours.add(fmt.Sprint(k, " ", why)) },
		})
		peer.Add("a", 1)
		c.Set("a", 1)
		peer.Add("a", 2) // which is told by ours only
		c.Set("a", 2)
		for _, k := range []string{"b", "c"} {
			peer.Add(k, 1)
			c.Set(k, 1)
		}
		peer.Remove("b")
		c.Delete("b")
		peer.Purge()
		c.Clear()
		synctest.Wait()
		assert.Equal(t, []string{"a", "b", "c"}, theirs.sorted())
		assert.Equal(t, []string{"a Evicted", "a Replaced", "b Deleted", "c Deleted"}, ours.sorted())
	}},
}
