package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/oncecache"
)

func open(_ context.Context, url string) (*engine, error) { return &engine{url: url}, nil }

func openAnew(_ context.Context, url string, _ *engine, _ bool) (*engine, error) {
	return &engine{url: url}, nil
}

// BenchmarkCacheLease acquires a lease of a value that is there, and releases
// it.
func BenchmarkCacheLease(b *testing.B) {
	for _, keys := range []int{1, 100} {
		urls, streams := load.URLs(keys), load.Uniform(keys, 0)
		run := func(impl string, use func(url string) *engine) {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl), func(b *testing.B) {
				for _, url := range urls {
					use(url)
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						key, _ := stream.Next()
						if e := use(urls[key]); e.serving != 0 {
							b.Error("an engine nobody changed has changed")
						}
					}
				})
			})
		}
		mutex := &locked.LeaseCache[string, *engine]{Close: func(string, *engine) {}}
		run("mutex", func(url string) *engine {
			lease, _ := mutex.Acquire(url, func() (*engine, error) { return &engine{url: url}, nil })
			defer lease.Release()
			return lease.Value()
		})
		ours := oncecache.MustNew(oncecache.Config[string, *engine]{
			Close: func(string, *engine) error { return nil },
		})
		run("latchfree", func(url string) *engine {
			lease, _ := ours.Acquire(context.Background(), url, open)
			defer lease.Release()
			return lease.Value()
		})
	}
}

// BenchmarkCacheMany asks for 100 keys at once, of which some are there. Those
// that are not are deleted again, and each goroutine has its own of them. The
// implementation "latchfreeloop" asks ours for one key after the other.
func BenchmarkCacheMany(b *testing.B) {
	const batch, resident = 100, 1000
	urls := load.URLs(resident + 64*batch)
	for _, hit := range []int{0, 90, 100} {
		run := func(impl string, c cacheMethods, many func([]string) int) {
			b.Run(fmt.Sprintf("keys=%d/hit=%d/impl=%s", batch, hit, impl), func(b *testing.B) {
				for _, url := range urls[:resident] {
					c.Set(url, &engine{url: url})
				}
				runtime.GC() // what filling has left behind is not part of the measurement
				var worker atomic.Int32
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					absent := urls[resident+batch*int(worker.Add(1)%64):][:batch-hit]
					keys := make([]string, batch)
					copy(keys[hit:], absent)
					for i := 0; pb.Next(); i++ {
						copy(keys[:hit], urls[i*7%(resident-batch):])
						if n := many(keys); n != batch {
							b.Errorf("got %d values", n)
						}
						for _, url := range absent {
							c.Delete(url)
						}
					}
				})
			})
		}
		openAll := func(urls []string) (map[string]*engine, error) {
			made := make(map[string]*engine, len(urls))
			for _, url := range urls {
				made[url] = &engine{url: url}
			}
			return made, nil
		}
		mutex := new(locked.MutexCache[string, *engine])
		run("mutex", mutex, func(keys []string) int {
			got, _ := mutex.GetOrCreateMany(keys, openAll)
			return len(got)
		})
		ours := new(oncecache.Cache[string, *engine])
		run("latchfreeloop", ours, func(keys []string) int {
			got := make(map[string]*engine, len(keys))
			for _, url := range keys {
				got[url], _ = ours.GetOrCreate(url, func() (*engine, error) { return &engine{url: url}, nil })
			}
			return len(got)
		})
		many := new(oncecache.Cache[string, *engine])
		run("latchfree", many, func(keys []string) int {
			got, _ := many.GetOrCreateMany(context.Background(), keys,
				func(_ context.Context, keys []string) (map[string]*engine, error) { return openAll(keys) })
			return len(got)
		})
	}
}

// BenchmarkCacheRefresh makes the values of keys anew that are there.
func BenchmarkCacheRefresh(b *testing.B) {
	const keys = 100
	urls, streams := load.URLs(keys), load.Uniform(keys, 0)
	run := func(impl string, c cacheMethods, refresh func(url string) (*engine, error)) {
		b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl), func(b *testing.B) {
			for _, url := range urls {
				c.Set(url, &engine{url: url})
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, _ := stream.Next()
					if e, err := refresh(urls[key]); err != nil || e.url != urls[key] {
						b.Error("got the engine of another URL")
					}
				}
			})
		})
	}
	mutex := new(locked.MutexCache[string, *engine])
	run("mutex", mutex, func(url string) (*engine, error) {
		return mutex.Refresh(url, func() (*engine, error) { return &engine{url: url}, nil })
	})
	ours := new(oncecache.Cache[string, *engine])
	run("latchfree", ours, func(url string) (*engine, error) {
		return ours.Refresh(context.Background(), url, openAnew)
	})
}
