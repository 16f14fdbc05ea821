package bench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/oncecache"
)

// engine is a value that must be the only one of its key.
type engine struct {
	url     string
	serving int
}

// cache is what the benchmarks use of a cache. Get is GetOrCreate with a
// function that captures the URL, called on one known type as programs do:
// through the interface, every such function would be allocated.
type cache struct {
	cacheMethods
	impl string
	get  func(url string) *engine
}

type cacheMethods interface {
	GetOrCreate(string, func() (*engine, error)) (*engine, error)
	Set(string, *engine) (*engine, bool)
	Delete(string) (*engine, bool)
}

func mutexCache() cache {
	c := new(locked.MutexCache[string, *engine])
	return cache{c, "mutex", func(url string) *engine {
		e, _ := c.GetOrCreate(url, func() (*engine, error) { return &engine{url: url}, nil })
		return e
	}}
}

func rwmutexCache() cache {
	c := new(locked.RWMutexCache[string, *engine])
	return cache{c, "rwmutex", func(url string) *engine {
		e, _ := c.GetOrCreate(url, func() (*engine, error) { return &engine{url: url}, nil })
		return e
	}}
}

func oncevaluesCache() cache {
	c := new(locked.OnceValuesCache[string, *engine])
	return cache{c, "oncevalues", func(url string) *engine {
		e, _ := c.GetOrCreate(url, func() (*engine, error) { return &engine{url: url}, nil })
		return e
	}}
}

func syncmapCache() cache {
	c := new(locked.SyncMapCache[string, *engine])
	return cache{c, "syncmap", func(url string) *engine {
		e, _ := c.GetOrCreate(url, func() (*engine, error) { return &engine{url: url}, nil })
		return e
	}}
}

func latchfreeCache() cache {
	c := new(oncecache.Cache[string, *engine])
	return cache{c, "latchfree", func(url string) *engine {
		e, _ := c.GetOrCreate(url, func() (*engine, error) { return &engine{url: url}, nil })
		return e
	}}
}

// xsyncLoad is no cache but the bare look-up in the table that ours is built
// on: the least that a hit could cost.
func xsyncLoad() cache {
	m := xsync.NewMapOf[string, *engine]()
	return cache{nil, "xsync", func(url string) *engine {
		if e, ok := m.Load(url); ok {
			return e
		}
		e, _ := m.LoadOrStore(url, &engine{url: url})
		return e
	}}
}

var cacheMakers = []func() cache{mutexCache, rwmutexCache, oncevaluesCache, syncmapCache, latchfreeCache}

// eachCache runs f for a cache of each kind, filled with urls once. Params may be
// empty, where b has them already.
func eachCache(b *testing.B, makers []func() cache, params string, urls []string, f func(b *testing.B, c cache)) {
	for _, maker := range makers {
		filled := sync.OnceValue(func() cache {
			c := maker()
			for _, url := range urls {
				c.get(url)
			}
			return c
		})
		b.Run(strings.TrimPrefix(params+"/impl="+maker().impl, "/"), func(b *testing.B) {
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
	}{{1, false}, {100, false}, {100, true}, {100_000, false}} {
		order := "uniform"
		if p.zipf {
			order = "zipf"
		}
		b.Run(fmt.Sprintf("keys=%d/order=%s", p.keys, order), func(b *testing.B) { // only what runs makes its keys
			urls, streams := load.URLs(p.keys), load.Uniform(p.keys, 0)
			if p.zipf {
				streams = load.Zipf(p.keys, 0)
			}
			eachCache(b, append(slices.Clone(cacheMakers), xsyncLoad), "", urls, func(b *testing.B, c cache) {
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						key, _ := stream.Next()
						if e := c.get(urls[key]); e.serving != 0 {
							b.Error("an engine nobody changed has changed")
						}
					}
				})
			})
		})
	}
}

// BenchmarkCacheMix asks for keys that are there and replaces some.
func BenchmarkCacheMix(b *testing.B) {
	for _, p := range []struct{ keys, hit int }{{100, 90}, {10_000, 99}} {
		urls, streams := load.URLs(p.keys), load.Uniform(p.keys, 100-p.hit)
		params := fmt.Sprintf("keys=%d/hit=%d", p.keys, p.hit)
		eachCache(b, cacheMakers, params, urls, func(b *testing.B, c cache) {
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, replace := stream.Next()
					if replace {
						c.Set(urls[key], &engine{url: urls[key]})
					} else if e := c.get(urls[key]); e.serving != 0 {
						b.Error("an engine nobody changed has changed")
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
	workers := max(8, runtime.NumCPU())
	urls := load.URLs(resident + workers*each)
	var worker atomic.Int32
	eachCache(b, cacheMakers, "keys=1000", urls[:resident], func(b *testing.B, c cache) {
		b.RunParallel(func(pb *testing.PB) {
			own := urls[resident+each*(int(worker.Add(1))%workers):][:each]
			for i := 0; pb.Next(); i++ {
				url := own[i%each]
				if e := c.get(url); e.url != url {
					b.Error("got the engine of another URL")
				}
				c.Delete(url)
			}
		})
	})
}

// BenchmarkCacheSlowKey asks for keys that are there while one goroutine
// creates a slow key over and over, 100 µs each time.
func BenchmarkCacheSlowKey(b *testing.B) {
	const slow, takes = "postgres://slow", 100 * time.Microsecond
	urls, streams := load.URLs(100), load.Uniform(100, 0)
	eachCache(b, cacheMakers, "keys=100", urls, func(b *testing.B, c cache) {
		var stop atomic.Bool
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for !stop.Load() {
				_, _ = c.GetOrCreate(slow, func() (*engine, error) {
					<-time.After(takes)
					return &engine{url: slow}, nil
				})
				c.Delete(slow)
			}
		}()
		b.RunParallel(func(pb *testing.PB) {
			stream := streams.Stream()
			for pb.Next() {
				key, _ := stream.Next()
				if e := c.get(urls[key]); e.serving != 0 {
					b.Error("an engine nobody changed has changed")
				}
			}
		})
		b.StopTimer()
		stop.Store(true)
		<-stopped
	})
}
