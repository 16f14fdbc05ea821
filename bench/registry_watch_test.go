package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/shardedregistry"
)

// watchedKeys is how many keys BenchmarkRegistryWatched changes.
const watchedKeys = 100

// BenchmarkRegistryWatched stores a value for one of many keys, beside loops that watch other keys,
// or, with of=all, all keys. With of=none the loops are goroutines that only sleep: the
// garbage collector looks at their stacks, too.
func BenchmarkRegistryWatched(b *testing.B) {
	names := load.Names(watchedKeys)
	for _, of := range []string{"none", "key", "prefix", "all"} {
		for _, loops := range []int{0, 1, 100, 1000} {
			b.Run(fmt.Sprintf("of=%s/loops=%d/impl=latchfree", of, loops), func(b *testing.B) {
				r := new(shardedregistry.Registry[string, action])
				putWatched(b, r, names, loops, func(ctx context.Context, loop int, begun func()) {
					var filters []shardedregistry.Filter[string]
					switch of {
					case "none":
						begun()
						<-ctx.Done()
						return
					case "key":
						filters = append(filters, shardedregistry.Keys(fmt.Sprint("other ", loop)))
					case "prefix":
						filters = append(filters, shardedregistry.Prefix(fmt.Sprintf("other %4d/", loop)))
					}
					for state := range r.WatchSnapshot(ctx, filters...) {
						if state != nil {
							begun()
						} else if filters != nil {
							b.Error("a loop is told of another key")
						}
					}
				})
			})
		}
	}
}

// putWatched stores values for keys beside so many loops, which run watch.
func putWatched[K comparable](b *testing.B, r *shardedregistry.Registry[K, action], keys []K, loops int, watch func(ctx context.Context, loop int, begun func())) {
	streams := load.Uniform(len(keys), 100)
	ctx, cancel := context.WithCancel(context.Background())
	var begun, ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	for loop := range loops {
		begun.Add(1)
		ended.Go(func() { watch(ctx, loop, begun.Done) })
	}
	begun.Wait()
	stream := streams.Stream()
	for i := 0; b.Loop(); i++ {
		key, _ := stream.Next()
		if _, err := r.Put(keys[key], action{Runs: i}); err != nil {
			b.Fatal(err)
		}
	}
}
