package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
)

// Otter's documentation forbids a loader to change the cache or to load a key
// that is being loaded, so cases do not let it do the former. The latter is
// asked of all.
var otterPeer = peer{
	name:   "otter",
	module: "github.com/maypok86/otter/v2",
	uses: "`Get` with one `LoaderFunc` for all calls, no bound, no expiry; `OnDeletion` where values are closed; " +
		"where a case is about it, `Refresh`, `BulkGet`, `MaximumSize`, `ExpiryWriting` with a clock that the case sets, " +
		"`ExpiryAccessing`, a `Loader` whose `Reload` returns the old value, `RefreshWriting`, a recorder of statistics that is told of loads, " +
		"`OnAtomicDeletion` where values are written back",
	lacks: map[feature]string{
		keptErrors: "errors are not kept",
		exclusives: "`OnDeletion` is called when the key is free, and while `OnAtomicDeletion` is, callers still find the value",
		clears:     "the documentation of `InvalidateAll` says that it is undefined for a key that is being loaded",
		waiting:    "`Get` creates what it does not find",
		closes:     "`StopAllGoroutines` stops the cleaner, nothing closes the cache",
		leases:     "no leases: `OnDeletion` does not know who uses the value",
	},
	open:  newOtter[string, *engine],
	pairs: newOtter[pair, *engine],
	parts: newOtter[string, part],
	anys:  newOtter[string, any],
}

type otterCache[K comparable, V any] struct {
	cache  *otter.Cache[K, V]
	loader otter.Loader[K, V]
	many   otter.BulkLoader[K, V]
	clock  *otterClock // nil without expiry
}

func newOtter[K comparable, V any](c config[K, V]) cache[K, V] {
	var options otter.Options[K, V]
	if c.left != nil {
		told := func(e otter.DeletionEvent[K, V]) { c.left(e.Key, e.Value) }
		if c.writesBack {
			options.OnAtomicDeletion = told
		} else {
			options.OnDeletion = told
		}
	}
	if c.missed != nil || c.created != nil {
		options.StatsRecorder = loadRecorder{new(stats.NoopRecorder), c.missed, c.created}
	}
	options.MaximumSize = c.bound
	if c.refreshes {
		options.RefreshCalculator = otter.RefreshWriting[K, V](never)
		options.Logger = new(otter.NoopLogger)
	}
	var clock *otterClock
	if c.expires {
		clock = new(otterClock)
		options.Clock, options.ExpiryCalculator = clock, otter.ExpiryWriting[K, V](life)
	}
	if c.over != nil {
		options.ExpiryCalculator = otter.ExpiryWritingFunc(func(e otter.Entry[K, V]) time.Duration {
			if c.over(e.Value) {
				return 1
			}
			return never
		})
	}
	if c.renews {
		clock = new(otterClock)
		options.Clock, options.ExpiryCalculator = clock, otter.ExpiryWriting[K, V](stale)
		options.RefreshCalculator, options.Logger = otter.RefreshWriting[K, V](fresh), new(otter.NoopLogger)
	}
	if c.idles {
		options.ExpiryCalculator = otter.ExpiryAccessing[K, V](idleLife)
	}
	return otterCache[K, V]{
		otter.Must(&options), otter.LoaderFunc[K, V](c.create), otter.BulkLoaderFunc[K, V](c.createMany), clock,
	}
}

// never is longer than a case takes.
const never = 1000 * time.Hour

// otterClock goes on when a case wants it.
type otterClock struct{ now atomic.Int64 }

func (c *otterClock) NowNano() int64                    { return c.now.Load() }
func (*otterClock) Tick(time.Duration) <-chan time.Time { return nil }

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

func (c otterCache[K, V]) refresh(key K) (V, error) {
	r := <-c.cache.Refresh(context.Background(), key, c.loader)
	return r.Value, r.Err
}

func (c otterCache[K, V]) reload(key K, look func(V)) (V, error) {
	r := <-c.cache.Refresh(context.Background(), key, stillRight[K, V]{c.loader, look})
	return r.Value, r.Err
}

// stillRight is a loader that finds that old values are still right.
type stillRight[K comparable, V any] struct {
	otter.Loader[K, V]
	look func(V)
}

func (l stillRight[K, V]) Reload(_ context.Context, _ K, old V) (V, error) {
	l.look(old)
	return old, nil
}

func (c otterCache[K, V]) getMany(ctx context.Context, keys []K) (map[K]V, error) {
	return c.cache.BulkGet(ctx, keys, c.many)
}

// renew lets the value become due, and uses it.
func (c otterCache[K, V]) renew(key K) (V, error) {
	c.clock.now.Add(int64(2 * fresh))
	return c.get(context.Background(), key)
}

func (c otterCache[K, V]) expire() { c.clock.now.Add(int64(2 * stale)) }

func (c otterCache[K, V]) sweep() { c.cache.CleanUp() }

func (c otterCache[K, V]) peek(key K) (V, bool) { return c.cache.GetIfPresent(key) }

func (c otterCache[K, V]) hit(key K, serial int) error {
	_, err := c.cache.Get(context.Background(), key, otter.LoaderFunc[K, V](func(context.Context, K) (V, error) {
		var none V
		return none, unexpected(serial)
	}))
	return err
}

// loadRecorder is told of misses, the one place at which a caller of Get can be
// held between its look and its load, and of loads that have ended well.
type loadRecorder struct {
	*stats.NoopRecorder
	missed, created func() // nil: nobody asks
}

func (r loadRecorder) RecordMisses(int) {
	if r.missed != nil {
		r.missed()
	}
}

func (r loadRecorder) RecordLoadSuccess(time.Duration) {
	if r.created != nil {
		r.created()
	}
}
