package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/viccon/sturdyc"
)

var sturdycPeer = peer{
	name:   "sturdyc",
	module: "github.com/viccon/sturdyc",
	uses: "`GetOrFetch`; 1,000,000 entries, 10 shards, two hours to live, 10 % evicted when full, as in its introduction; " +
		"where a case is about it, `WithEarlyRefreshes`, `GetOrFetchBatch`, fewer entries, `WithMissingRecordStorage`, a `TestClock` that the case sets",
	lacks: map[feature]string{
		askedRefreshes: "a refresh begins when a value that has become old is used, and nobody asks for it",
		waiting:        "`GetOrFetch` creates what it does not find",
		pairKeys:       "keys are strings",
		lives:          "all values have the same time to live",
		hooks:          "its metrics tell of no creations",
		listener:       "no notice of values that leave",
		closes:         "cannot be closed",
		leases:         "no leases",
		reloads:        "a fetch function does not get the old value",
		clears:         "keys are deleted one by one",
		idleness:       "the time of a value counts from when it was written",
		exclusives:     "no notice of values that leave",
	},
	open: newSturdyc[*engine],
	anys: newSturdyc[any],
}

type sturdycCache[V any] struct {
	client *sturdyc.Client[V]
	config config[string, V]
	clock  *sturdyc.TestClock
}

// Times of sturdyc, by the clock that a case sets. A refresh that has failed is
// tried again a minute later, or two.
const (
	sturdycLife  = 2 * time.Hour
	sturdycFresh = time.Minute
	sturdycOld   = 5 * time.Minute
)

func newSturdyc[V any](c config[string, V]) cache[string, V] {
	var options []sturdyc.Option
	if c.missed != nil {
		options = append(options, sturdyc.WithMetrics(missMetrics{missed: c.missed}))
	}
	clock := sturdyc.NewTestClock(time.Now())
	if c.refreshes || c.renews || c.expires || c.keepsErrors {
		options = append(options, sturdyc.WithClock(clock))
	}
	if c.refreshes || c.renews {
		options = append(options,
			sturdyc.WithLog(new(sturdyc.NoopLogger)),
			sturdyc.WithEarlyRefreshes(sturdycFresh, 2*sturdycFresh, never, sturdycFresh))
	}
	if c.keepsErrors {
		options = append(options, sturdyc.WithMissingRecordStorage())
	}
	return sturdycCache[V]{sturdyc.New[V](cmp.Or(c.bound, size), 10, sturdycLife, 10, options...), c, clock}
}

func (c sturdycCache[V]) get(ctx context.Context, key string) (V, error) {
	return c.client.GetOrFetch(ctx, key, func(ctx context.Context) (V, error) {
		v, err := c.config.create(ctx, key)
		if c.config.keepsErrors && errors.Is(err, errCreate) {
			err = errors.Join(sturdyc.ErrNotFound, err) // the one error that is kept
		}
		return v, err
	})
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

// refresh lets a value become old, and uses it.
func (c sturdycCache[V]) refresh(key string) (none V, err error) {
	c.clock.Add(sturdycOld)
	_, err = c.get(context.Background(), key)
	return none, err
}

// renew lets the value become due, and uses it.
func (c sturdycCache[V]) renew(key string) (V, error) {
	c.clock.Add(sturdycOld)
	return c.get(context.Background(), key)
}

func (c sturdycCache[V]) getMany(ctx context.Context, keys []string) (map[string]V, error) {
	same := func(id string) string { return id }
	return c.client.GetOrFetchBatch(ctx, keys, same, c.config.createMany)
}

func (c sturdycCache[V]) expire() { c.clock.Add(2 * sturdycLife) }

// sweep lets the clock go on by steps, upon each of which the cache looks at
// one of its shards.
func (c sturdycCache[V]) sweep() {
	for range 40 {
		c.clock.Add(sturdycLife / 10)
		time.Sleep(time.Millisecond)
	}
}

func (c sturdycCache[V]) peek(key string) (V, bool) { return c.client.Get(key) }

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
