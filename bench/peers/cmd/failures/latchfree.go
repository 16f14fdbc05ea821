package main

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

var latchfreePeer = peer{
	name:   "oncecache",
	module: "github.com/latchfree/latchfree",
	uses: "`GetOrCreateContext`; with `Config.Close` where values are closed, and `Acquire` where they are in use; " +
		"where a case is about it, `Refresh`, `Reload`, `GetOrCreateMany`, `Clear`, `MaxEntries`, " +
		"`IdleTimeout`, `ErrorTTL`, `CloseBeforeCreate`",
	lacks: map[feature]string{stops: ""},
	open:  newLatchfree[string, *engine],
	pairs: newLatchfree[pair, *engine],
	anys:  newLatchfree[string, any],
}

// life is how long values stay in caches whose clock is the real one: longer
// than a case takes between a creation and its last look at what was created.
const life = time.Second

// idleLife is how long values stay that nobody uses. One of the caches compared
// rounds the time of a use by up to a second.
const idleLife = 3 * time.Second

// elapse waits until what was created with a life is too old, and was looked
// for: those who count a life in steps of their own take up to twice as long.
func elapse() { time.Sleep(2*life + life/2) }

type latchfreeCache[K comparable, V any] struct {
	cache  *oncecache.Cache[K, V]
	config config[K, V]
}

func newLatchfree[K comparable, V any](c config[K, V]) cache[K, V] {
	settings := oncecache.Config[K, V]{MaxEntries: c.bound, CloseBeforeCreate: c.exclusive}
	if c.left != nil {
		settings.Close = func(key K, v V) error {
			c.left(key, v)
			return nil
		}
	}
	if c.expires {
		settings.IdleTimeout = life
	}
	if c.idles {
		settings.IdleTimeout = idleLife
	}
	if c.keepsErrors {
		settings.ErrorTTL = func(K, error) time.Duration { return life }
	}
	return latchfreeCache[K, V]{oncecache.MustNew(settings), c}
}

func (c latchfreeCache[K, V]) get(ctx context.Context, key K) (V, error) {
	return c.cache.GetOrCreateContext(ctx, key, c.config.create)
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
	lease, err := c.cache.Acquire(ctx, key, c.config.create)
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

func (c latchfreeCache[K, V]) refresh(key K) (V, error) {
	return c.cache.Refresh(context.Background(), key, c.config.create)
}

func (c latchfreeCache[K, V]) reload(key K, look func(V)) (V, error) {
	return c.cache.Reload(context.Background(), key, func(_ context.Context, _ K, old V, _ bool) (V, error) {
		look(old)
		var none V
		return none, oncecache.ErrNotModified
	})
}

func (c latchfreeCache[K, V]) clear() { c.cache.Clear() }

func (c latchfreeCache[K, V]) getMany(ctx context.Context, keys []K) (map[K]V, error) {
	return c.cache.GetOrCreateMany(ctx, keys, c.config.createMany)
}

func (c latchfreeCache[K, V]) expire() { elapse() }

func (c latchfreeCache[K, V]) sweep() { c.cache.Sweep() }

func (c latchfreeCache[K, V]) peek(key K) (V, bool) { return c.cache.Get(key) }

func (c latchfreeCache[K, V]) wait(ctx context.Context, key K) (V, error) {
	return c.cache.Wait(ctx, key)
}
