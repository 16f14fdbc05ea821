//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A key that is repeated has a value or an error in the end, and never both, though what
// the call finds for it changes from one look to the next.
func TestRepeatedKeysHaveOneOutcome(t *testing.T) {
	ctx := context.Background()
	fails := func(context.Context, int) (int, error) { return 0, errors.New("not today") }
	for name, tt := range map[string]struct {
		settings oncecache.Config[int, int]
		other    func(c *oncecache.Cache[int, int])
	}{
		"a creation that fails, Set": {oncecache.Config[int, int]{}, func(c *oncecache.Cache[int, int]) {
			c.GetOrCreateContext(ctx, 1, fails)
			c.Set(1, 1)
		}},
		"a creation that fails, another": {oncecache.Config[int, int]{}, func(c *oncecache.Cache[int, int]) {
			c.GetOrCreateContext(ctx, 1, fails)
			c.GetOrCreateContext(ctx, 1, func(context.Context, int) (int, error) { return 1, nil })
		}},
		"leases": {oncecache.Config[int, int]{Close: func(int, int) error { return nil }}, func(c *oncecache.Cache[int, int]) {
			c.GetOrCreateContext(ctx, 1, fails)
			c.Set(1, 1)
		}},
		"Set, Delete": {oncecache.Config[int, int]{}, func(c *oncecache.Cache[int, int]) {
			c.Set(1, 1)
			c.Delete(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of("GetOrCreateMany(1, 1) ∥ "+name), func(m *mc.M) {
				c := oncecache.MustNew(tt.settings)
				c.Len()
				m.Go(func() {
					found, err := c.GetOrCreateMany(ctx, []int{1, 1}, func(_ context.Context, keys []int) (map[int]int, error) {
						if len(keys) != 1 {
							m.Failf("create is called for %v", keys)
						}
						return nil, errors.New("nor now")
					})
					v, ok := found[1]
					failed := oncecache.KeyErrors[int]{}
					errors.As(err, &failed)
					if ok == (failed[1] != nil) {
						m.Failf("value %d, %t; error %v", v, ok, err)
					}
				})
				m.Go(func() { tt.other(c) })
				m.Final(func() {
					if err := c.Close(ctx); err != nil { // also if a lease were left
						m.Failf("Close returns %v", err)
					}
				})
			})
		})
	}
}
