package bench

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/shardedregistry"
)

// BenchmarkRegistryRef reads entities by their names, and through Refs that were made
// before. With few of them everything is in the caches.
func BenchmarkRegistryRef(b *testing.B) {
	for _, keys := range []int{1, 100, 100_000} {
		names, streams := load.Names(keys), load.Uniform(keys, 0)
		r := new(shardedregistry.Registry[string, action])
		refs := make([]shardedregistry.Ref[string, action], keys)
		for i, name := range names {
			if _, err := r.Create(name, action{Name: name}); err != nil {
				b.Fatal(err)
			}
			refs[i] = r.Ref(name)
			refs[i].Get()
		}
		for _, way := range []struct {
			impl string
			get  func(key int) (action, bool)
		}{
			{"latchfree", func(key int) (action, bool) { return r.Get(names[key]) }},
			{"latchfreeref", func(key int) (action, bool) { return refs[key].Get() }},
		} {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, way.impl), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for stream := streams.Stream(); pb.Next(); {
						key, _ := stream.Next()
						if _, ok := way.get(key); !ok {
							b.Error("a key is missing")
						}
					}
				})
			})
		}
	}
}
