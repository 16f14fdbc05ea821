//go:build !modelcheck

package oncecache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// BenchmarkCacheHitBounded is a hit in caches whose values have a place in the order, next to
// one in a cache without bounds.
func BenchmarkCacheHitBounded(b *testing.B) {
	hour := func(string, int) time.Duration { return time.Hour }
	for _, keys := range []int{100, 100_000} {
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprintf("https://example.com/tenant/%d", i*7919)
		}
		for _, impl := range []struct {
			name string
			config
		}{
			{"unbounded", config{}},
			{"maxentries", config{MaxEntries: 1 << 20}},
			{"ttl", config{TTLFunc: hour}},
		} {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl.name), func(b *testing.B) {
				c := oncecache.MustNew(impl.config)
				for i, k := range names {
					c.Set(k, i)
					c.Get(k)
				}
				order := rand.New(rand.NewPCG(1, 2)).Perm(keys)
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					if v, err := c.GetOrCreate(names[order[i%keys]], failing); v < 0 || err != nil {
						b.Fatal(v, err)
					}
				}
			})
		}
	}
}
