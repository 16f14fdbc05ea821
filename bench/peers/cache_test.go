package peers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	xsync3 "github.com/puzpuzpuz/xsync/v3"
	xsync4 "github.com/puzpuzpuz/xsync/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/bench/peers/homemade"
	"github.com/latchfree/latchfree/oncecache"
)

// engine is a value that must be the only one of its key.
type engine struct {
	url    string
	serial int
}

// cache is what the scenarios use of a cache. Its get is called for a hit or
// creates an engine. The functions call one known type each, as programs do.
type cache struct {
	get    func(url string) (*engine, error)
	set    func(url string, e *engine)
	delete func(url string)
}

// cacheMaker makes a cache with a function that creates an engine. The peers
// are given it beforehand; ours and the mutex, at each call, in another
// function that captures the URL.
type cacheMaker struct {
	impl string
	make func(create func(string) (*engine, error)) cache
	bare bool // a map and no cache: two creations of one key may both happen
}

// caches lists what is compared.
var caches = []cacheMaker{
	{impl: "mutex", make: func(create func(string) (*engine, error)) cache {
		c := new(locked.MutexCache[string, *engine])
		return cache{
			func(url string) (*engine, error) {
				return c.GetOrCreate(url, func() (*engine, error) { return create(url) })
			},
			func(url string, e *engine) { c.Set(url, e) },
			func(url string) { c.Delete(url) },
		}
	}},
	{impl: "otter", make: func(create func(string) (*engine, error)) cache {
		c, ctx := newOtterCache(create), context.Background()
		return cache{func(url string) (*engine, error) { return c.getOrCreate(ctx, url) }, c.set, c.delete}
	}},
	{impl: "singleflight", make: func(create func(string) (*engine, error)) cache {
		c := homemade.NewFlights(func(_ context.Context, url string) (*engine, error) { return create(url) })
		return cache{func(url string) (*engine, error) { return c.GetChecked(url) }, c.Set, c.Delete}
	}},
	{impl: "oncevalues", make: func(create func(string) (*engine, error)) cache {
		c := homemade.NewOnces(create)
		return cache{func(url string) (*engine, error) { return c.Get(url) }, c.Set, c.Delete}
	}},
	{impl: "latchfree", make: func(create func(string) (*engine, error)) cache {
		c := new(oncecache.Cache[string, *engine])
		return cache{
			func(url string) (*engine, error) {
				return c.GetOrCreate(url, func() (*engine, error) { return create(url) })
			},
			func(url string, e *engine) { c.Set(url, e) },
			func(url string) { c.Delete(url) },
		}
	}},
	// No caches but bare maps, and so the least that a look-up could cost.
	{impl: "xsync3", make: func(create func(string) (*engine, error)) cache {
		m := xsync3.NewMapOf[string, *engine]()
		return cache{
			func(url string) (*engine, error) {
				if e, ok := m.Load(url); ok {
					return e, nil
				}
				return createInto(m.LoadOrStore, create, url)
			},
			m.Store,
			m.Delete,
		}
	}, bare: true},
	{impl: "xsync4", make: func(create func(string) (*engine, error)) cache {
		m := xsync4.NewMap[string, *engine]()
		return cache{
			func(url string) (*engine, error) {
				if e, ok := m.Load(url); ok {
					return e, nil
				}
				return createInto(m.LoadOrStore, create, url)
			},
			m.Store,
			m.Delete,
		}
	}, bare: true},
	{impl: "pointers", make: func(create func(string) (*engine, error)) cache {
		c := newPointersCache(create)
		return cache{func(url string) (*engine, error) { return c.get(url) }, c.set, c.delete}
	}, bare: true},
}

// createInto is a miss of a bare map.
func createInto(
	loadOrStore func(string, *engine) (*engine, bool), create func(string) (*engine, error), url string,
) (*engine, error) {
	e, err := create(url)
	if err == nil {
		e, _ = loadOrStore(url, e)
	}
	return e, err
}

// doCache is singleflight without a look into the map before it.
var doCache = cacheMaker{impl: "singleflightdo", make: func(create func(string) (*engine, error)) cache {
	c := homemade.NewFlights(func(_ context.Context, url string) (*engine, error) { return create(url) })
	return cache{func(url string) (*engine, error) { return c.GetDo(url) }, c.Set, c.Delete}
}}

// eachCache runs f for a cache of each kind, filled with urls once.
func eachCache(b *testing.B, makers []cacheMaker, params string, urls []string, f func(b *testing.B, c cache)) {
	for _, impl := range makers {
		filled := sync.OnceValue(func() cache {
			c := impl.make(func(url string) (*engine, error) { return &engine{url: url}, nil })
			for _, url := range urls {
				if _, err := c.get(url); err != nil {
					b.Fatal(err)
				}
			}
			return c
		})
		b.Run(params+"/impl="+impl.impl, func(b *testing.B) {
			c := filled()
			runtime.GC() // what filling has left behind is not part of the measurement
			b.ReportAllocs()
			b.ResetTimer()
			f(b, c)
		})
	}
}

// BenchmarkCacheHit asks for keys that are there.
func BenchmarkCacheHit(b *testing.B) {
	for _, p := range []struct {
		keys int
		zipf bool
	}{{1, false}, {100, false}, {100, true}, {100_000, false}, {100_000, true}} {
		urls, order, streams := load.URLs(p.keys), "uniform", load.Uniform(p.keys, 0)
		if p.zipf {
			order, streams = "zipf", load.Zipf(p.keys, 0)
		}
		makers := append(slices.Clone(caches), doCache)
		eachCache(b, makers, fmt.Sprintf("keys=%d/order=%s", p.keys, order), urls, func(b *testing.B, c cache) {
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, _ := stream.Next()
					if e, err := c.get(urls[key]); err != nil || e.serial != 0 {
						b.Error("not the engine that was created")
					}
				}
			})
		})
	}
}

// BenchmarkCacheMix asks for keys that are there and replaces some.
func BenchmarkCacheMix(b *testing.B) {
	for _, p := range []struct{ keys, hit int }{{100, 90}, {100_000, 99}} {
		urls, streams := load.URLs(p.keys), load.Uniform(p.keys, 100-p.hit)
		eachCache(b, caches, fmt.Sprintf("keys=%d/hit=%d", p.keys, p.hit), urls, func(b *testing.B, c cache) {
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, replace := stream.Next()
					if replace {
						c.set(urls[key], &engine{url: urls[key]})
					} else if e, err := c.get(urls[key]); err != nil || e.serial != 0 {
						b.Error("not the engine that was created")
					}
				}
			})
		})
	}
}

// BenchmarkCacheCreate creates the value of a new key and deletes it again,
// each goroutine its own keys.
func BenchmarkCacheCreate(b *testing.B) {
	const resident, each = 1000, 1000
	urls := load.URLs(resident + 64*each)
	var worker atomic.Int32
	eachCache(b, caches, "keys=1000", urls[:resident], func(b *testing.B, c cache) {
		b.RunParallel(func(pb *testing.PB) {
			own := urls[resident+each*int(worker.Add(1)%64):][:each]
			for i := 0; pb.Next(); i++ {
				url := own[i%each]
				if e, err := c.get(url); err != nil || e.url != url {
					b.Error("got the engine of another URL")
				}
				c.delete(url)
			}
		})
	})
}

// Each cache creates a value once however many ask, and keeps it.
func TestCachesCreateOnce(t *testing.T) {
	const workers, keys = 4, 100
	for _, impl := range append(slices.Clone(caches), doCache) {
		if impl.bare {
			continue
		}
		t.Run(impl.impl, func(t *testing.T) {
			var created atomic.Int64
			urls := load.URLs(keys)
			c := impl.make(func(url string) (*engine, error) {
				return &engine{url, int(created.Add(1))}, nil
			})
			var got [workers][keys]*engine
			together(workers, func(worker int) {
				for i, url := range urls {
					e, err := c.get(url)
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
		})
	}
}

// A value that is set replaces the one there was, also if none was, and a
// deletion makes the next caller create anew.
func TestCachesSetAndDelete(t *testing.T) {
	for _, impl := range append(slices.Clone(caches), doCache) {
		t.Run(impl.impl, func(t *testing.T) {
			created := 0
			c := impl.make(func(url string) (*engine, error) {
				created++
				return &engine{url, created}, nil
			})
			want := func(key string, serial int) {
				t.Helper()
				e, err := c.get(key)
				require.NoError(t, err)
				assert.Equal(t, &engine{key, serial}, e)
			}
			want("a", 1)
			c.set("a", &engine{"a", 7})
			want("a", 7)
			c.set("b", &engine{"b", 8})
			want("b", 8)
			c.delete("a")
			want("a", 2)
		})
	}
}

func TestCachesForgetErrors(t *testing.T) {
	for _, impl := range caches {
		t.Run(impl.impl, func(t *testing.T) {
			calls := 0
			c := impl.make(func(url string) (*engine, error) {
				if calls++; calls == 1 {
					return nil, assert.AnError
				}
				return &engine{url, calls}, nil
			})
			_, err := c.get("a")
			require.ErrorIs(t, err, assert.AnError)
			e, err := c.get("a")
			require.NoError(t, err)
			assert.Equal(t, 2, e.serial)
		})
	}
}
