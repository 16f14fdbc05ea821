package main

import (
	"context"
	"math"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

var latchfreePeer = peer{
	name:   "oncecache",
	module: "github.com/latchfree/latchfree",
	uses: "`GetOrCreateContext`; with `Config.Close` where values are closed, and `Acquire` where they are in use; " +
		"where a case is about it, `Refresh`, `GetOrCreateMany`, `Clear`, `MaxEntries`, " +
		"`TTL` or `TTLFunc`, `RenewAhead`, `OnCreate`, `IdleTimeout`, `ErrorTTL`, `CloseBeforeCreate`",
	lacks: map[feature]string{stops: ""},
	open:  newLatchfree[string, *engine],
	pairs: newLatchfree[pair, *engine],
	parts: newLatchfree[string, part],
	anys:  newLatchfree[string, any],
}

// life is how long values stay in caches whose clock is the real one: longer
// than a case takes between a creation and its last look at what was created.
const life = time.Second

// idleLife is how long values stay that nobody uses. One of the caches compared
// rounds the time of a use by up to a second.
const idleLife = 3 * time.Second

// fresh and stale are the times of caches that renew values in the background:
// "fresh for five minutes, usable for a day".
const (
	fresh = life / 2
	stale = 4 * life
)

// elapse waits until what was created with a life is too old, and was looked
// for: those who count a life in steps of their own take up to twice as long.
func elapse() { time.Sleep(2*life + life/2) }

type latchfreeCache[K comparable, V any] struct {
	cache  *oncecache.Cache[K, V]
	config config[K, V]
}

func newLatchfree[K comparable, V any](c config[K, V]) cache[K, V] {
	settings := oncecache.Config[K, V]{MaxEntries: c.bound, CloseBeforeCreate: c.exclusive || c.writesBack}
	if c.left != nil {
		settings.Close = func(key K, v V) error {
			c.left(key, v)
			return nil
		}
	}
	if c.expires && !c.idles {
		settings.TTL = life
	}
	if c.over != nil {
		settings.TTLFunc = func(_ K, v V) time.Duration {
			if c.over(v) {
				return 0
			}
			return math.MaxInt64
		}
	}
	if c.renews {
		settings.TTL, settings.RenewAhead = stale, stale-fresh
		settings.Create = c.create
	}
	if c.created != nil {
		settings.OnCreate = func(K, time.Duration, error) { c.created() }
	}
	if c.idles {
		settings.IdleTimeout = idleLife
	}
	if c.keepsErrors {
		settings.ErrorTTL = life
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
	return c.cache.Refresh(context.Background(), key, func(ctx context.Context, key K, _ V, _ bool) (V, error) {
		return c.config.create(ctx, key)
	})
}

func (c latchfreeCache[K, V]) reload(key K, look func(V)) (V, error) {
	return c.cache.Refresh(context.Background(), key, func(_ context.Context, _ K, old V, _ bool) (V, error) {
		look(old)
		var none V
		return none, oncecache.ErrNotModified
	})
}

func (c latchfreeCache[K, V]) clear() { c.cache.Clear() }

func (c latchfreeCache[K, V]) getMany(ctx context.Context, keys []K) (map[K]V, error) {
	return c.cache.GetOrCreateMany(ctx, keys, c.config.createMany)
}

// renew lets the value become due, and uses it.
func (c latchfreeCache[K, V]) renew(key K) (V, error) {
	time.Sleep(2 * fresh)
	return c.get(context.Background(), key)
}

func (c latchfreeCache[K, V]) expire() {
	switch {
	case c.config.renews:
		time.Sleep(stale + life)
	case c.config.idles:
		time.Sleep(2 * idleLife)
	default:
		elapse()
	}
}

// sweep has nothing to do: a timer of the cache removes what is too old.
func (latchfreeCache[K, V]) sweep() {}

func (c latchfreeCache[K, V]) peek(key K) (V, bool) { return c.cache.Get(key) }

func (c latchfreeCache[K, V]) wait(ctx context.Context, key K) (V, error) {
	return c.cache.Wait(ctx, key)
}
