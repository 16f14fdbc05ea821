//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// Whoever looks at a cache that is about to be used for the first time, or to be
// refreshed for the first time, sees what was there before, or what comes.
func TestLooksBeforeAll(t *testing.T) {
	type cache = *oncecache.Cache[int, int]
	flights := func(c cache) (n int) {
		for range c.InFlight() {
			n++
		}
		return n
	}
	for name, tt := range map[string]struct {
		first, next func(c cache)
		look        func(c cache) int
		most        int
	}{
		"Set and Len":          {nil, func(c cache) { c.Set(1, 1) }, cache.Len, 1},
		"Set and Stats":        {nil, func(c cache) { c.Set(1, 1) }, func(c cache) int { return int(c.Stats().Created) }, 0},
		"Set and InFlight":     {nil, func(c cache) { c.Set(1, 1) }, flights, 0},
		"Refresh and Len":      {func(c cache) { c.Set(1, 1) }, refresh, cache.Len, 2}, // one begins
		"Refresh and InFlight": {func(c cache) { c.Set(1, 1) }, refresh, flights, 1},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: name + ", the first"}, func(m *mc.M) {
				var c oncecache.Cache[int, int]
				if tt.first != nil {
					tt.first(&c)
				}
				m.Go(func() { tt.next(&c) })
				m.Go(func() {
					if n := tt.look(&c); n > tt.most {
						m.Failf("%d, of at most %d", n, tt.most)
					}
				})
			})
		})
	}
}

func refresh(c *oncecache.Cache[int, int]) {
	_, _ = c.Refresh(context.Background(), 1, anew(makesTwo))
}
