package peers

import (
	"context"

	"github.com/maypok86/otter/v2"
)

// otterCache is a cache of github.com/maypok86/otter/v2 v2.4.0 without bounds,
// expiry or statistics: the configuration with the quickest hit, in which it
// too keeps everything until it is deleted.
//
// One load of a key runs at a time, and its waiters share the outcome. Get
// takes an interface, so a loader that captures variables would be allocated
// at each call, hit or miss. The loader is given the key, so one made
// beforehand does for all, which is how otter is meant to be used.
type otterCache[V any] struct {
	cache  *otter.Cache[string, V]
	loader otter.Loader[string, V]
}

func newOtterCache[V any](create func(string) (V, error)) *otterCache[V] {
	return &otterCache[V]{
		cache:  otter.Must(&otter.Options[string, V]{}),
		loader: otter.LoaderFunc[string, V](func(_ context.Context, key string) (V, error) { return create(key) }),
	}
}

func (c *otterCache[V]) getOrCreate(ctx context.Context, key string) (V, error) {
	return c.cache.Get(ctx, key, c.loader)
}

func (c *otterCache[V]) set(key string, v V) { c.cache.Set(key, v) }

func (c *otterCache[V]) delete(key string) { c.cache.Invalidate(key) }
