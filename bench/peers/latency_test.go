package peers

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/bench/internal/latency"
	"github.com/latchfree/latchfree/bench/internal/load"
)

// Benchmarks of latency are those of package bench, of the same names, with peers: see
// bench/internal/latency.

var closed = []latency.Pattern{latency.Closed1, latency.Closed4}

// BenchmarkLatencyBreakerCall makes calls of which one in a hundred fails.
func BenchmarkLatencyBreakerCall(b *testing.B) {
	var all []latency.Candidate
	for _, impl := range breakers {
		all = append(all, latency.Candidate{Impl: impl.impl, Make: func() latency.Op {
			call, stream := impl.make(never), latency.StreamsFor(load.Uniform(1, 1))
			return func(worker, _ int) bool {
				_, fail := stream(worker).Next()
				return latency.Done(call(fail))
			}
		}})
	}
	latency.Each(b, closed, latency.Shortest, append(all, latency.Idle)...)
}

// filledWith returns caches that hold an engine for each of some URLs.
func filledWith(urls []string, op func(cache) latency.Op) []latency.Candidate {
	var all []latency.Candidate
	for _, impl := range caches {
		if impl.bare {
			continue
		}
		all = append(all, latency.Candidate{Impl: impl.impl, Make: func() latency.Op {
			c := impl.make(func(url string) (*engine, error) { return &engine{url: url}, nil })
			for _, url := range urls {
				if _, err := c.get(url); err != nil {
					panic(err)
				}
			}
			return op(c)
		}})
	}
	return append(all, latency.Idle)
}

// BenchmarkLatencyCacheHit asks for keys that are there.
func BenchmarkLatencyCacheHit(b *testing.B) {
	urls := load.URLs(100)
	latency.Each(b, closed, latency.Shortest, filledWith(urls, func(c cache) latency.Op {
		stream := latency.StreamsFor(load.Uniform(len(urls), 0))
		return func(worker, _ int) bool {
			key, _ := stream(worker).Next()
			e, err := c.get(urls[key])
			return latency.Done(err == nil && e != nil)
		}
	})...)
}

// BenchmarkLatencyCacheBurst starts goroutines that all ask for one absent key,
// whose creation takes a millisecond: each is measured from the start of all.
func BenchmarkLatencyCacheBurst(b *testing.B) {
	const goroutines, takes = 200, time.Millisecond
	run := func(impl string, get func(url string)) {
		b.Run("goroutines=200/impl="+impl, func(b *testing.B) {
			h := latency.New()
			for n := range b.N {
				h.Merge(latency.Burst(goroutines, latency.Window(latency.Shortest), func(burst int) {
					get(strconv.Itoa(n) + "/" + strconv.Itoa(burst))
				}))
			}
			latency.Report(b, h)
		})
	}
	for _, impl := range caches {
		if impl.bare {
			continue
		}
		make := sync.OnceValue(func() cache {
			return impl.make(func(url string) (*engine, error) {
				latency.Wait(takes)
				return &engine{url: url}, nil
			})
		})
		run(impl.impl, func(url string) { _, _ = make().get(url) })
	}
	run("idle", func(string) { latency.Wait(takes) })
}

// BenchmarkLatencyRegistryMix reads nine keys for one that it updates.
func BenchmarkLatencyRegistryMix(b *testing.B) {
	names := load.Names(100)
	var all []latency.Candidate
	for _, impl := range registries {
		all = append(all, latency.Candidate{Impl: impl.impl, Make: func() latency.Op {
			r := impl.make()
			create(b, r, names)
			stream := latency.StreamsFor(load.Uniform(len(names), 10))
			return func(worker, _ int) bool {
				key, write := stream(worker).Next()
				if !write {
					_, ok := r.Get(names[key])
					return latency.Done(ok)
				}
				_, err := r.Update(names[key], run)
				return latency.Done(err == nil)
			}
		}})
	}
	latency.Each(b, closed, latency.Shortest, append(all, latency.Idle)...)
}
