//go:build !modelcheck

package oncecache_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

// Values are what they were, whatever their types and those of keys take, and however
// they come and go.
func TestValuesOfAllSizes(t *testing.T) {
	odd := [3]byte{1, 2, 3}
	allWays(t, odd, struct{}{}, struct{}{})
	allWays(t, "k", false, true)
	allWays(t, odd, [5]byte{4}, [5]byte{4, 5, 6})
	allWays[any](t, 1, [9]uint64{8: 1}, [9]uint64{8: 2})
	allWays(t, struct{}{}, "one", "another")
	allWays(t, odd, any(nil), any("another"))
	allWays(t, struct{}{}, new(atomic.Uint64), new(atomic.Uint64))
	type wide struct { // of 64 bits, also where others have 32
		_ [0]atomic.Uint64
		n uint64
	}
	allWays(t, odd, wide{n: 1}, wide{n: 1 << 63})
}

func allWays[K, V comparable](t *testing.T, k K, one, another V) {
	ctx := context.Background()
	for name, config := range map[string]oncecache.Config[K, V]{
		"zero":   {},
		"closes": {Close: func(_ K, v V) error { return wantValue(t, "Close", v, one, another) }},
		"bounds": {MaxEntries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(config)
			got, _ := c.GetOrCreate(k, func() (V, error) { return one, nil })
			wantValue(t, "GetOrCreate", got, one)
			got, _ = c.Get(k)
			wantValue(t, "Get", got, one)
			lease, _ := c.Acquire(ctx, k, nilCreate[K, V])
			wantValue(t, "Acquire", lease.Value(), one)
			lease.Release()
			got, _ = c.Set(k, another)
			wantValue(t, "Set", got, one)
			got, _ = c.Refresh(ctx, k, func(context.Context, K) (V, error) { return one, nil })
			wantValue(t, "Refresh", got, one)
			got, _ = c.Reload(ctx, k, func(_ context.Context, _ K, old V, _ bool) (V, error) {
				wantValue(t, "Reload", old, one)
				return another, nil
			})
			wantValue(t, "Reload", got, another)
			got, _ = c.Delete(k)
			wantValue(t, "Delete", got, another)
			many, _ := c.GetOrCreateMany(ctx, []K{k}, func(context.Context, []K) (map[K]V, error) { return map[K]V{k: one}, nil })
			wantValue(t, "GetOrCreateMany", many[k], one)
			for _, v := range c.All() {
				wantValue(t, "All", v, one)
			}
			c.Clear()
			// What Delete makes the cache forget is another entry's.
			got, _ = c.GetOrCreateContext(ctx, k, func(context.Context, K) (V, error) { c.Delete(k); return another, nil })
			wantValue(t, "GetOrCreateContext", got, another)
			if err := c.Close(ctx); err != nil || name == "closes" && c.Stats().Closed == 0 {
				t.Errorf("%v, %d closed", err, c.Stats().Closed)
			}
		})
	}
}

func nilCreate[K, V any](context.Context, K) (v V, err error) { return v, errRefused }

func wantValue[V comparable](t *testing.T, what string, got V, want ...V) error {
	t.Helper()
	for _, v := range want {
		if got == v {
			return nil
		}
	}
	t.Errorf("%s: got %v, want %v", what, got, want)
	return nil
}
