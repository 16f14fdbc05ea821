package bench

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/shardedregistry"
)

// BenchmarkRegistryRef reads or updates entities by their names, and through
// Refs that were made before. With few of them everything is in the caches.
func BenchmarkRegistryRef(b *testing.B) {
	for _, keys := range []int{1, 100, 100_000} {
		for _, write := range []int{0, 100} {
			names, streams := load.Names(keys), load.Uniform(keys, write)
			r := new(shardedregistry.Registry[string, action])
			refs := make([]shardedregistry.Ref[string, action], keys)
			for i, name := range names {
				if _, err := r.Create(name, action{Name: name}); err != nil {
					b.Fatal(err)
				}
				refs[i] = r.Ref(name)
				refs[i].Get()
			}
			params := fmt.Sprintf("keys=%d/read=%d", keys, 100-write)
			b.Run(params+"/impl=latchfree", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for stream := streams.Stream(); pb.Next(); {
						key, write := stream.Next()
						if write {
							if _, err := r.Update(names[key], run); err != nil {
								b.Error(err)
							}
						} else if _, ok := r.Get(names[key]); !ok {
							b.Error("a key is missing")
						}
					}
				})
			})
			b.Run(params+"/impl=latchfreeref", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for stream := streams.Stream(); pb.Next(); {
						key, write := stream.Next()
						if write {
							if _, err := refs[key].Update(run); err != nil {
								b.Error(err)
							}
						} else if _, ok := refs[key].Get(); !ok {
							b.Error("a key is missing")
						}
					}
				})
			})
		}
	}
}
