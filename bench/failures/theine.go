package main

import (
	"cmp"
	"context"
	"time"

	"github.com/Yiling-J/theine-go"
)

// size is the capacity of caches that must have one: more than any case uses.
const size = 1_000_000

var theinePeer = peer{
	name:   "theine",
	module: "github.com/Yiling-J/theine-go",
	uses: "a loading cache of 1,000,000 entries, or fewer where a case is about that; `RemovalListener` where values are closed; " +
		"`Loaded.TTL` where values expire",
	lacks: map[feature]string{
		refreshes:      "no refresh",
		renewals:       "no refresh",
		hooks:          "nobody is told of creations",
		askedRefreshes: "no refresh",
		batches:        "one key at a time",
		keptErrors:     "errors are not kept",
		peeks:          "`Get` creates what it does not find",
		waiting:        "`Get` creates what it does not find",
		stops:          "",
		leases:         "no leases: the `RemovalListener` does not know who uses the value",
		captures:       "the loader is given beforehand",
		reloads:        "no refresh",
		clears:         "keys are deleted one by one",
		idleness:       "the time of a value counts from when it was written",
		exclusives:     "the `RemovalListener` is called when the key is free",
	},
	open:  newTheine[string, *engine],
	pairs: newTheine[pair, *engine],
	parts: newTheine[string, part],
	anys:  newTheine[string, any],
}

type theineCache[K comparable, V any] struct {
	cache *theine.LoadingCache[K, V]
	over  func(V) bool
}

func newTheine[K comparable, V any](c config[K, V]) cache[K, V] {
	builder := theine.NewBuilder[K, V](int64(cmp.Or(c.bound, size)))
	if c.left != nil {
		builder.RemovalListener(func(key K, v V, _ theine.RemoveReason) { c.left(key, v) })
	}
	var ttl time.Duration // 0: values stay
	if c.expires {
		ttl = life
	}
	cache, err := builder.Loading(func(ctx context.Context, key K) (theine.Loaded[V], error) {
		v, err := c.create(ctx, key)
		return theine.Loaded[V]{Value: v, Cost: 1, TTL: ttl}, err
	}).Build()
	if err != nil {
		panic(err)
	}
	return theineCache[K, V]{cache, c.over}
}

func (c theineCache[K, V]) get(ctx context.Context, key K) (V, error) { return c.cache.Get(ctx, key) }

func (c theineCache[K, V]) set(key K, v V) {
	if c.over != nil && c.over(v) {
		c.cache.SetWithTTL(key, v, 1, 1)
		return
	}
	c.cache.Set(key, v, 1)
}

func (c theineCache[K, V]) delete(key K) { c.cache.Delete(key) }

func (c theineCache[K, V]) each(f func(K) bool) {
	c.cache.Range(func(key K, _ V) bool { return f(key) })
}

func (c theineCache[K, V]) close(context.Context) { c.cache.Close() }

func (c theineCache[K, V]) expire() { elapse() }

// sweep waits until the cache, which looks every second, has looked.
func (c theineCache[K, V]) sweep() { time.Sleep(2 * time.Second) }
