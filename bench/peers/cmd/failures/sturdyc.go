package main

import (
	"context"
	"time"

	"github.com/viccon/sturdyc"
)

var sturdycPeer = peer{
	name:   "sturdyc",
	module: "github.com/viccon/sturdyc",
	uses:   "`GetOrFetch`; 1,000,000 entries, 10 shards, two hours to live, 10 % evicted when full, as in its introduction",
	lacks: map[feature]string{
		pairKeys: "keys are strings",
		listener: "no notice of values that leave",
		closes:   "cannot be closed",
		leases:   "no leases",
	},
	open: newSturdyc[*engine],
	anys: newSturdyc[any],
}

type sturdycCache[V any] struct {
	client *sturdyc.Client[V]
	create func(context.Context, string) (V, error)
}

func newSturdyc[V any](c config[string, V]) cache[string, V] {
	var options []sturdyc.Option
	if c.missed != nil {
		options = append(options, sturdyc.WithMetrics(missMetrics{missed: c.missed}))
	}
	return sturdycCache[V]{sturdyc.New[V](size, 10, 2*time.Hour, 10, options...), c.create}
}

func (c sturdycCache[V]) get(ctx context.Context, key string) (V, error) {
	return c.client.GetOrFetch(ctx, key, func(ctx context.Context) (V, error) { return c.create(ctx, key) })
}

func (c sturdycCache[V]) set(key string, v V) { c.client.Set(key, v) }

func (c sturdycCache[V]) delete(key string) { c.client.Delete(key) }

func (c sturdycCache[V]) each(f func(string) bool) {
	for _, key := range c.client.ScanKeys() {
		if !f(key) {
			return
		}
	}
}

func (c sturdycCache[V]) hit(key string, serial int) error {
	_, err := c.client.GetOrFetch(context.Background(), key, func(context.Context) (V, error) {
		var none V
		return none, unexpected(serial)
	})
	return err
}

// missMetrics is told of misses: the one place at which a caller of GetOrFetch
// can be held between its look and its flight.
type missMetrics struct{ missed func() }

func (m missMetrics) CacheMiss() { m.missed() }

func (missMetrics) CacheHit()                   {}
func (missMetrics) AsynchronousRefresh()        {}
func (missMetrics) SynchronousRefresh()         {}
func (missMetrics) MissingRecord()              {}
func (missMetrics) ForcedEviction()             {}
func (missMetrics) EntriesEvicted(int)          {}
func (missMetrics) ShardIndex(int)              {}
func (missMetrics) CacheBatchRefreshSize(int)   {}
func (missMetrics) ObserveCacheSize(func() int) {}
