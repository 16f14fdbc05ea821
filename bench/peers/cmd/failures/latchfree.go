package main

import (
	"context"

	"github.com/latchfree/latchfree/oncecache"
)

var latchfreePeer = peer{
	name:   "oncecache",
	module: "github.com/latchfree/latchfree",
	uses:   "`GetOrCreateContext`; with `Config.Close` where values are closed, and `Acquire` where they are in use",
	lacks:  map[feature]string{stops: ""},
	open:   newLatchfree[string, *engine],
	pairs:  newLatchfree[pair, *engine],
	anys:   newLatchfree[string, any],
}

type latchfreeCache[K comparable, V any] struct {
	cache  *oncecache.Cache[K, V]
	create func(context.Context, K) (V, error)
}

func newLatchfree[K comparable, V any](c config[K, V]) cache[K, V] {
	var settings oncecache.Config[K, V]
	if c.left != nil {
		settings.Close = func(key K, v V) error {
			c.left(key, v)
			return nil
		}
	}
	return latchfreeCache[K, V]{oncecache.MustNew(settings), c.create}
}

func (c latchfreeCache[K, V]) get(ctx context.Context, key K) (V, error) {
	return c.cache.GetOrCreateContext(ctx, key, c.create)
}

func (c latchfreeCache[K, V]) set(key K, v V) { c.cache.Set(key, v) }

func (c latchfreeCache[K, V]) delete(key K) { c.cache.Delete(key) }

func (c latchfreeCache[K, V]) each(f func(K) bool) {
	for key := range c.cache.Keys() {
		if !f(key) {
			return
		}
	}
}

func (c latchfreeCache[K, V]) close(ctx context.Context) { _ = c.cache.Close(ctx) }

func (c latchfreeCache[K, V]) acquire(ctx context.Context, key K) (V, func(), error) {
	lease, err := c.cache.Acquire(ctx, key, c.create)
	if err != nil {
		var none V
		return none, nil, err
	}
	return lease.Value(), lease.Release, nil
}

func (c latchfreeCache[K, V]) hit(key K, serial int) error {
	_, err := c.cache.GetOrCreate(key, func() (V, error) {
		var none V
		return none, unexpected(serial)
	})
	return err
}
