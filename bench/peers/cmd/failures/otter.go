package main

import (
	"context"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
)

// Otter's documentation forbids a loader to change the cache or to load a key
// that is being loaded, so cases do not let it do the former. The latter is
// asked of all.
var otterPeer = peer{
	name:   "otter",
	module: "github.com/maypok86/otter/v2",
	uses:   "`Get` with one `LoaderFunc` for all calls, no bound, no expiry; `OnDeletion` where values are closed",
	lacks: map[feature]string{
		closes: "`StopAllGoroutines` stops the cleaner, nothing closes the cache",
		leases: "no leases: `OnDeletion` does not know who uses the value",
	},
	open:  newOtter[string, *engine],
	pairs: newOtter[pair, *engine],
	anys:  newOtter[string, any],
}

type otterCache[K comparable, V any] struct {
	cache  *otter.Cache[K, V]
	loader otter.Loader[K, V]
}

func newOtter[K comparable, V any](c config[K, V]) cache[K, V] {
	var options otter.Options[K, V]
	if c.left != nil {
		options.OnDeletion = func(e otter.DeletionEvent[K, V]) { c.left(e.Key, e.Value) }
	}
	if c.missed != nil {
		options.StatsRecorder = missRecorder{new(stats.NoopRecorder), c.missed}
	}
	return otterCache[K, V]{otter.Must(&options), otter.LoaderFunc[K, V](c.create)}
}

func (c otterCache[K, V]) get(ctx context.Context, key K) (V, error) {
	return c.cache.Get(ctx, key, c.loader)
}

func (c otterCache[K, V]) set(key K, v V) { c.cache.Set(key, v) }

func (c otterCache[K, V]) delete(key K) { c.cache.Invalidate(key) }

func (c otterCache[K, V]) each(f func(K) bool) {
	for key := range c.cache.Keys() {
		if !f(key) {
			return
		}
	}
}

func (c otterCache[K, V]) hit(key K, serial int) error {
	_, err := c.cache.Get(context.Background(), key, otter.LoaderFunc[K, V](func(context.Context, K) (V, error) {
		var none V
		return none, unexpected(serial)
	}))
	return err
}

// missRecorder is told of misses: the one place at which a caller of Get can
// be held between its look and its load.
type missRecorder struct {
	*stats.NoopRecorder
	missed func()
}

func (r missRecorder) RecordMisses(int) { r.missed() }
