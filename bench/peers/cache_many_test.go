package peers

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/oncecache"
)

func openAll(_ context.Context, urls []string) (map[string]*engine, error) {
	made := make(map[string]*engine, len(urls))
	for _, url := range urls {
		made[url] = &engine{url: url}
	}
	return made, nil
}

// newRefreshingOtter returns otter with what its Refresh needs: refreshes that
// begin by themselves are due in an hour.
func newRefreshingOtter() *otter.Cache[string, *engine] {
	return otter.Must(&otter.Options[string, *engine]{
		RefreshCalculator: otter.RefreshWriting[string, *engine](time.Hour),
		Logger:            new(otter.NoopLogger),
	})
}

// BenchmarkCacheMany asks for 100 keys at once, of which some are there. Those
// that are not are deleted again, and each goroutine has its own of them.
func BenchmarkCacheMany(b *testing.B) {
	const batch, resident = 100, 1000
	urls := load.URLs(resident + 64*batch)
	for _, hit := range []int{0, 90, 100} {
		run := func(impl string, set func(string, *engine), remove func(string), many func([]string) (map[string]*engine, error)) {
			b.Run(fmt.Sprintf("keys=%d/hit=%d/impl=%s", batch, hit, impl), func(b *testing.B) {
				for _, url := range urls[:resident] {
					set(url, &engine{url: url})
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
						if got, err := many(keys); err != nil || len(got) != batch {
							b.Errorf("got %d values: %v", len(got), err)
						}
						for _, url := range absent {
							remove(url)
						}
					}
				})
			})
		}
		ctx := context.Background()
		mutex := new(locked.MutexCache[string, *engine])
		run("mutex", func(url string, e *engine) { mutex.Set(url, e) }, func(url string) { mutex.Delete(url) },
			func(keys []string) (map[string]*engine, error) {
				return mutex.GetOrCreateMany(keys, func(keys []string) (map[string]*engine, error) { return openAll(ctx, keys) })
			})
		peer := otter.Must(&otter.Options[string, *engine]{})
		run("otter", func(url string, e *engine) { peer.Set(url, e) }, func(url string) { peer.Invalidate(url) },
			func(keys []string) (map[string]*engine, error) {
				return peer.BulkGet(ctx, keys, otter.BulkLoaderFunc[string, *engine](openAll))
			})
		ours := new(oncecache.Cache[string, *engine])
		run("latchfree", func(url string, e *engine) { ours.Set(url, e) }, func(url string) { ours.Delete(url) },
			func(keys []string) (map[string]*engine, error) { return ours.GetOrCreateMany(ctx, keys, openAll) })
	}
}

// BenchmarkCacheRefresh makes the values of keys anew that are there, and waits
// for them. Otter makes them on a goroutine of its own.
func BenchmarkCacheRefresh(b *testing.B) {
	const keys = 100
	ctx := context.Background()
	urls, streams := load.URLs(keys), load.Uniform(keys, 0)
	run := func(impl string, set func(string, *engine), refresh func(url string) (*engine, error)) {
		b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl), func(b *testing.B) {
			for _, url := range urls {
				set(url, &engine{url: url})
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
	run("mutex", func(url string, e *engine) { mutex.Set(url, e) }, func(url string) (*engine, error) {
		return mutex.Refresh(url, func() (*engine, error) { return open(ctx, url) })
	})
	peer := newRefreshingOtter()
	run("otter", func(url string, e *engine) { peer.Set(url, e) }, func(url string) (*engine, error) {
		r := <-peer.Refresh(ctx, url, otter.LoaderFunc[string, *engine](open))
		return r.Value, r.Err
	})
	ours := new(oncecache.Cache[string, *engine])
	run("latchfree", func(url string, e *engine) { ours.Set(url, e) }, func(url string) (*engine, error) {
		return ours.Refresh(ctx, url, func(ctx context.Context, url string, _ *engine, _ bool) (*engine, error) { return open(ctx, url) })
	})
}
