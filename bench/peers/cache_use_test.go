package peers

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/maypok86/otter/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/bench/peers/homemade"
	"github.com/latchfree/latchfree/oncecache"
)

// hits runs get for keys that are there, on all goroutines. Each goroutine
// counts its calls, for functions to capture.
func hits(b *testing.B, impl string, set func(string, *engine), get func(url string, call int) (*engine, error)) {
	const keys = 100
	urls, streams := load.URLs(keys), load.Uniform(keys, 0)
	b.Run("keys=100/impl="+impl, func(b *testing.B) {
		for _, url := range urls {
			set(url, &engine{url: url})
		}
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			stream := streams.Stream()
			for call := 1; pb.Next(); call++ {
				key, _ := stream.Next()
				if e, err := get(urls[key], call); err != nil || e.serial != 0 {
					b.Error("not the engine that was set")
				}
			}
		})
	})
}

func open(_ context.Context, url string) (*engine, error) { return &engine{url: url, serial: 1}, nil }

// BenchmarkCacheHitContext asks for keys that are there, with a context that
// can end and a create function that captures nothing.
func BenchmarkCacheHitContext(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mutex := new(locked.MutexCache[string, *engine])
	hits(b, "mutex", func(url string, e *engine) { mutex.Set(url, e) }, func(url string, _ int) (*engine, error) {
		return mutex.GetOrCreate(url, func() (*engine, error) { return open(ctx, url) })
	})
	flights := homemade.NewFlights(open)
	hits(b, "singleflight", flights.Set, func(url string, _ int) (*engine, error) { return flights.GetContext(ctx, url) })
	peer := otter.Must(&otter.Options[string, *engine]{})
	hits(b, "otter", func(url string, e *engine) { peer.Set(url, e) }, func(url string, _ int) (*engine, error) {
		return peer.Get(ctx, url, otter.LoaderFunc[string, *engine](open))
	})
	ours := new(oncecache.Cache[string, *engine])
	hits(b, "latchfree", func(url string, e *engine) { ours.Set(url, e) }, func(url string, _ int) (*engine, error) {
		return ours.GetOrCreateContext(ctx, url, open)
	})
}

// BenchmarkCacheHitCapturing asks for keys that are there, with a create
// function made at the call that captures a variable. The implementation
// "latchfreecontext" is ours where the function is given a context.
func BenchmarkCacheHitCapturing(b *testing.B) {
	ctx := context.Background()
	mutex := new(locked.MutexCache[string, *engine])
	hits(b, "mutex", func(url string, e *engine) { mutex.Set(url, e) }, func(url string, call int) (*engine, error) {
		return mutex.GetOrCreate(url, func() (*engine, error) { return &engine{url, call}, nil })
	})
	peer := otter.Must(&otter.Options[string, *engine]{})
	hits(b, "otter", func(url string, e *engine) { peer.Set(url, e) }, func(url string, call int) (*engine, error) {
		return peer.Get(ctx, url, otter.LoaderFunc[string, *engine](func(_ context.Context, url string) (*engine, error) {
			return &engine{url, call}, nil
		}))
	})
	ours := new(oncecache.Cache[string, *engine])
	set := func(url string, e *engine) { ours.Set(url, e) }
	hits(b, "latchfree", set, func(url string, call int) (*engine, error) {
		return ours.GetOrCreate(url, func() (*engine, error) { return &engine{url, call}, nil })
	})
	hits(b, "latchfreecontext", set, func(url string, call int) (*engine, error) {
		return ours.GetOrCreateContext(ctx, url, func(_ context.Context, url string) (*engine, error) {
			return &engine{url, call}, nil
		})
	})
}

// creators are the caches that create a value once.
func creators() []cacheMaker {
	return slices.DeleteFunc(slices.Clone(caches), func(c cacheMaker) bool { return c.bare })
}

// BenchmarkCacheStorm lets 1,000 goroutines ask for one absent key. The value is
// created when all have been about to ask, so nearly all wait; then they are
// woken. One operation is a storm, with the start of its goroutines if they are
// new, a message to each if they are kept, and the deletion of the key.
func BenchmarkCacheStorm(b *testing.B) {
	for _, kept := range []bool{false, true} {
		goroutines := "new"
		if kept {
			goroutines = "kept"
		}
		for _, impl := range creators() {
			b.Run("callers=1000/goroutines="+goroutines+"/impl="+impl.impl, func(b *testing.B) { storm(b, impl, kept) })
		}
	}
}

func storm(b *testing.B, impl cacheMaker, kept bool) {
	const callers = 1000
	urls := load.URLs(1000)
	var asking atomic.Int32
	var all chan struct{}
	created, storms := 0, 0
	c := impl.make(func(url string) (*engine, error) {
		<-all
		for range 10 { // so that those who are about to ask do
			runtime.Gosched()
		}
		created++
		return &engine{url: url}, nil
	})
	ask := func(url string) {
		if asking.Add(1) == callers {
			close(all)
		}
		if e, err := c.get(url); err != nil || e.url != url {
			b.Error("got the engine of another URL")
		}
	}
	var done, ended sync.WaitGroup
	messages := make(chan string)
	if kept {
		for range callers {
			ended.Go(func() {
				for url := range messages {
					ask(url)
					done.Done()
				}
			})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		url := urls[storms%len(urls)]
		asking.Store(0)
		all = make(chan struct{})
		for range callers {
			if kept {
				done.Add(1)
				messages <- url
			} else {
				done.Go(func() { ask(url) })
			}
		}
		done.Wait()
		c.delete(url)
		storms++
	}
	close(messages)
	ended.Wait()
	if created != storms {
		b.Errorf("%d creations in %d storms", created, storms)
	}
}

// stuck makes a cache, in which one creation does not return before release is
// called.
func stuck(impl cacheMaker) (c cache, release func()) {
	const url = "postgres://stuck"
	begun, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c = impl.make(func(asked string) (*engine, error) {
		if asked == url {
			close(begun)
			<-goOn
		}
		return &engine{url: asked}, nil
	})
	go func() {
		defer close(ended)
		_, _ = c.get(url)
	}()
	<-begun
	return c, func() {
		close(goOn)
		<-ended
	}
}

// BenchmarkCacheStuckKey creates 200,000 other keys while one creation hangs,
// and then begins with a new cache. One operation is a creation. The mutex is
// not here: with it all would wait. See TestStuckKey.
func BenchmarkCacheStuckKey(b *testing.B) {
	const keys = 200_000
	urls := load.URLs(keys)
	for _, impl := range creators() {
		if impl.impl == "mutex" {
			continue
		}
		b.Run("keys=200000/impl="+impl.impl, func(b *testing.B) {
			c, release := stuck(impl)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if i > 0 && i%keys == 0 {
					b.StopTimer()
					release()
					c, release = stuck(impl)
					b.StartTimer()
				}
				if e, err := c.get(urls[i%keys]); err != nil || e.url != urls[i%keys] {
					b.Error("got the engine of another URL")
				}
			}
			b.StopTimer()
			release()
		})
	}
}

// One creation hangs, and somebody asks for other keys.
func TestStuckKey(t *testing.T) {
	urls := load.URLs(1000)
	for _, impl := range creators() {
		t.Run(impl.impl, func(t *testing.T) {
			c, release := stuck(impl)
			var released atomic.Bool
			created := make(chan bool, 1) // whether the creation had to be released before
			go func() {
				for _, url := range urls {
					e, err := c.get(url)
					assert.NoError(t, err)
					assert.Equal(t, url, e.url)
				}
				created <- released.Load()
			}()
			if impl.impl == "mutex" {
				for range 1000 {
					runtime.Gosched()
				}
				released.Store(true)
				release()
				require.True(t, <-created, "it goes on beside a creation that hangs")
				return
			}
			require.False(t, <-created)
			release()
		})
	}
}

// A storm on a key is one creation, and everybody gets its value.
func TestStorm(t *testing.T) {
	const callers = 100
	for _, impl := range append(creators(), doCache) {
		t.Run(impl.impl, func(t *testing.T) {
			var asking, created atomic.Int32
			c := impl.make(func(url string) (*engine, error) {
				for asking.Load() < callers {
					runtime.Gosched()
				}
				return &engine{url, int(created.Add(1))}, nil
			})
			together(callers, func(int) {
				asking.Add(1)
				e, err := c.get("a")
				assert.NoError(t, err)
				assert.Equal(t, &engine{"a", 1}, e)
			})
			assert.EqualValues(t, 1, created.Load())
		})
	}
}
