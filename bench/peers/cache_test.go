package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/oncecache"
)

// engine is what the caches hold: one for each URL.
type engine struct {
	url    string
	serial int
}

// engineCache is what the scenarios use of a cache. It is only called where
// the call through an interface does not matter: in tests and preparation.
type engineCache interface {
	getOrCreate(key string) (*engine, error)
	set(key string, v *engine)
}

// getOtter and latchfreeCache make the two whose calls take more than the key
// look like the others.
type getOtter struct{ *otterCache[*engine] }

func (c getOtter) getOrCreate(key string) (*engine, error) {
	return c.otterCache.getOrCreate(context.Background(), key)
}

type latchfreeCache struct {
	oncecache.Cache[string, *engine]
	create func(string) (*engine, error)
}

func (c *latchfreeCache) getOrCreate(key string) (*engine, error) {
	return c.GetOrCreate(key, func() (*engine, error) { return c.create(key) })
}

func (c *latchfreeCache) set(key string, v *engine) { c.Set(key, v) }

// caches lists what is compared, each with a function that creates an engine.
var caches = []struct {
	impl string
	make func(create func(string) (*engine, error)) engineCache
}{
	{"otter", func(f func(string) (*engine, error)) engineCache { return getOtter{newOtterCache(f)} }},
	{"singleflight", func(f func(string) (*engine, error)) engineCache { return newFlightCache(f) }},
	{"syncmap", func(f func(string) (*engine, error)) engineCache { return newOnceCache(f) }},
	{"latchfree", func(f func(string) (*engine, error)) engineCache { return &latchfreeCache{create: f} }},
}

// Each cache creates a value once however many ask, and keeps it; a failure is
// not kept; a value that is set replaces the one there was.
func TestCachesCreateOnce(t *testing.T) {
	const workers, keys = 4, 100
	for _, impl := range caches {
		t.Run(impl.impl, func(t *testing.T) {
			var created atomic.Int64
			urls := load.URLs(keys)
			cache := impl.make(func(url string) (*engine, error) {
				return &engine{url, int(created.Add(1))}, nil
			})
			var got [workers][keys]*engine
			together(workers, func(worker int) {
				for i, url := range urls {
					e, err := cache.getOrCreate(url)
					if err != nil || e.url != url {
						t.Error(e, err)
					}
					got[worker][i] = e
				}
			})
			assert.EqualValues(t, keys, created.Load())
			for worker := range workers {
				assert.Equal(t, got[0], got[worker])
			}

			other := &engine{url: urls[0]}
			cache.set(urls[0], other)
			e, err := cache.getOrCreate(urls[0])
			require.NoError(t, err)
			assert.Same(t, other, e)
		})
	}
}

func TestCachesForgetErrors(t *testing.T) {
	for _, impl := range caches {
		t.Run(impl.impl, func(t *testing.T) {
			calls := 0
			cache := impl.make(func(url string) (*engine, error) {
				if calls++; calls == 1 {
					return nil, assert.AnError
				}
				return &engine{url, calls}, nil
			})
			_, err := cache.getOrCreate("a")
			require.ErrorIs(t, err, assert.AnError)
			e, err := cache.getOrCreate("a")
			require.NoError(t, err)
			assert.Equal(t, 2, e.serial)
		})
	}
}

// contenders returns the loops that read keys from streams and replace the
// value where the stream says write.
func cacheContenders(urls []string, streams *load.Streams) []contender {
	create := func(url string) (*engine, error) { return &engine{url: url}, nil }
	fill := func(b *testing.B, cache engineCache) {
		for _, url := range urls {
			if _, err := cache.getOrCreate(url); err != nil {
				b.Fatal(err)
			}
		}
	}
	return []contender{
		{"otter", func(b *testing.B) func(*testing.PB) {
			cache, ctx := newOtterCache(create), context.Background()
			fill(b, getOtter{cache})
			return func(pb *testing.PB) {
				for stream := streams.Stream(); pb.Next(); {
					i, write := stream.Next()
					if write {
						cache.set(urls[i], &engine{urls[i], i})
					} else if e, err := cache.getOrCreate(ctx, urls[i]); err != nil || e == nil {
						b.Error(e, err)
						return
					}
				}
			}
		}},
		{"singleflight", func(b *testing.B) func(*testing.PB) {
			cache := newFlightCache(create)
			fill(b, cache)
			return func(pb *testing.PB) {
				for stream := streams.Stream(); pb.Next(); {
					i, write := stream.Next()
					if write {
						cache.set(urls[i], &engine{urls[i], i})
					} else if e, err := cache.getOrCreate(urls[i]); err != nil || e == nil {
						b.Error(e, err)
						return
					}
				}
			}
		}},
		{"syncmap", func(b *testing.B) func(*testing.PB) {
			cache := newOnceCache(create)
			fill(b, cache)
			return func(pb *testing.PB) {
				for stream := streams.Stream(); pb.Next(); {
					i, write := stream.Next()
					if write {
						cache.set(urls[i], &engine{urls[i], i})
					} else if e, err := cache.getOrCreate(urls[i]); err != nil || e == nil {
						b.Error(e, err)
						return
					}
				}
			}
		}},
		{"xsync3floor", func(b *testing.B) func(*testing.PB) {
			engines := newXsync3Map[*engine]()
			for _, url := range urls {
				engines.Store(url, &engine{url: url})
			}
			return func(pb *testing.PB) {
				for stream := streams.Stream(); pb.Next(); {
					i, write := stream.Next()
					if write {
						engines.Store(urls[i], &engine{urls[i], i})
					} else if e, ok := engines.Load(urls[i]); !ok || e == nil {
						b.Error(e, ok)
						return
					}
				}
			}
		}},
		{"latchfree", func(b *testing.B) func(*testing.PB) {
			cache := &latchfreeCache{create: create}
			fill(b, cache)
			return func(pb *testing.PB) {
				for stream := streams.Stream(); pb.Next(); {
					i, write := stream.Next()
					if write {
						cache.Set(urls[i], &engine{urls[i], i})
					} else if e, err := cache.GetOrCreate(urls[i], func() (*engine, error) { return create(urls[i]) }); err != nil || e == nil {
						b.Error(e, err)
						return
					}
				}
			}
		}},
	}
}

// BenchmarkCacheHit asks for keys that are there.
func BenchmarkCacheHit(b *testing.B) {
	for _, keys := range []int{1, 100, 100_000} {
		urls := load.URLs(keys)
		compare(b, fmt.Sprintf("keys=%d/order=uniform/", keys), cacheContenders(urls, load.Uniform(keys, 0))...)
	}
}

// BenchmarkCacheMix replaces values meanwhile.
func BenchmarkCacheMix(b *testing.B) {
	const keys = 100
	urls := load.URLs(keys)
	for _, hits := range []int{99, 90} {
		compare(b, fmt.Sprintf("keys=%d/read=%d/order=uniform/", keys, hits), cacheContenders(urls, load.Uniform(keys, 100-hits))...)
	}
}
