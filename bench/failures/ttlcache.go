package main

import (
	"context"
	"errors"
	"time"

	"github.com/jellydator/ttlcache/v3"
)

var ttlcachePeer = peer{
	name:   "ttlcache",
	module: "github.com/jellydator/ttlcache/v3",
	uses: "`WithLoader` of a `SuppressedLoader`, no bound, no expiry; `OnEviction` where values are closed; " +
		"where a case is about it, `WithCapacity`, a time to live, `DeleteAll`, `OnInsertion`",
	lacks: map[feature]string{
		refreshes:      "no refresh",
		renewals:       "no refresh",
		askedRefreshes: "no refresh",
		batches:        "one key at a time",
		keptErrors:     "a `Loader` returns no error",
		waiting:        "`Get` creates what it does not find",
		contexts:       "`Get` takes no context",
		cancels:        "`Get` takes no context",
		failures:       "a `Loader` returns no error",
		closes:         "`Stop` stops the cleaner, nothing closes the cache",
		leases:         "no leases: `OnEviction` does not know who uses the value",
		captures:       "the loader is given beforehand",
		reloads:        "no refresh",
		exclusives:     "`OnEviction` runs on a goroutine of its own when the key is free",
	},
	open:  newTTLCache[string, *engine],
	pairs: newTTLCache[pair, *engine],
	parts: newTTLCache[string, part],
	anys:  newTTLCache[string, any],
}

// errNoItem is what a Get of ttlcache that returns no item amounts to.
var errNoItem = errors.New("ttlcache: Get returned no item")

type ttlCache[K comparable, V any] struct {
	cache *ttlcache.Cache[K, V]
	ttl   time.Duration
	over  func(V) bool
}

func newTTLCache[K comparable, V any](c config[K, V]) cache[K, V] {
	var ttl time.Duration = ttlcache.NoTTL
	if c.expires {
		ttl = life
	}
	if c.idles {
		ttl = idleLife // Get begins it anew
	}
	var loader ttlcache.Loader[K, V] = ttlcache.NewSuppressedLoader[K, V](
		ttlcache.LoaderFunc[K, V](func(cache *ttlcache.Cache[K, V], key K) *ttlcache.Item[K, V] {
			v, err := c.create(context.Background(), key)
			if err != nil {
				return nil
			}
			return cache.Set(key, v, ttl)
		}), nil)
	if c.missed != nil {
		suppressed := loader
		loader = ttlcache.LoaderFunc[K, V](func(cache *ttlcache.Cache[K, V], key K) *ttlcache.Item[K, V] {
			c.missed() // only a miss gets here
			return suppressed.Load(cache, key)
		})
	}
	cache := ttlcache.New(ttlcache.WithLoader(loader), ttlcache.WithCapacity[K, V](uint64(c.bound)))
	if c.left != nil {
		cache.OnEviction(func(_ context.Context, _ ttlcache.EvictionReason, item *ttlcache.Item[K, V]) {
			c.left(item.Key(), item.Value())
		})
	}
	if c.created != nil {
		cache.OnInsertion(func(context.Context, *ttlcache.Item[K, V]) { c.created() })
	}
	return ttlCache[K, V]{cache, ttl, c.over}
}

func (c ttlCache[K, V]) get(_ context.Context, key K) (V, error) {
	item := c.cache.Get(key)
	if item == nil {
		var none V
		return none, errNoItem
	}
	return item.Value(), nil
}

func (c ttlCache[K, V]) set(key K, v V) {
	ttl := c.ttl
	if c.over != nil && c.over(v) {
		ttl = 1
	}
	c.cache.Set(key, v, ttl)
}

func (c ttlCache[K, V]) delete(key K) { c.cache.Delete(key) }

func (c ttlCache[K, V]) clear() { c.cache.DeleteAll() }

func (c ttlCache[K, V]) each(f func(K) bool) {
	c.cache.Range(func(item *ttlcache.Item[K, V]) bool { return f(item.Key()) })
}

func (c ttlCache[K, V]) expire() { elapse() }

func (c ttlCache[K, V]) sweep() { c.cache.DeleteExpired() }

func (c ttlCache[K, V]) peek(key K) (V, bool) {
	item := c.cache.Get(key, ttlcache.WithLoader[K, V](nil))
	if item == nil {
		var none V
		return none, false
	}
	return item.Value(), true
}
