//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Whatever makes values go, it leaves those that leases hold, and takes them when
// the last lease has ended; whether they are closed then or not.
func TestLeasedStay(t *testing.T) {
	for name, tt := range map[string]struct {
		oncecache.Config[int, int]
		press func(c *oncecache.Cache[int, int]) // makes all go that may
	}{
		"MaxEntries": {oncecache.Config[int, int]{MaxEntries: 2}, func(c *oncecache.Cache[int, int]) {
			for i := range 20 {
				c.Set(100+i, i)
			}
		}},
		"MaxEntries, creations": {oncecache.Config[int, int]{MaxEntries: 2}, func(c *oncecache.Cache[int, int]) {
			for i := range 20 {
				c.GetOrCreate(100+i, with(i))
			}
		}},
		"IdleTimeout": {oncecache.Config[int, int]{IdleTimeout: time.Minute}, func(*oncecache.Cache[int, int]) { time.Sleep(time.Hour) }},
		"Sweep": {oncecache.Config[int, int]{IdleTimeout: time.Minute}, func(c *oncecache.Cache[int, int]) {
			for range 5 {
				time.Sleep(50 * time.Second)
				oncecache.Sweep(c)
			}
		}},
	} {
		for _, closes := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", closed ", closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var closed atomic.Int64
					if closes {
						tt.Close = func(k, _ int) error {
							if k < 100 {
								closed.Add(1)
							}
							return nil
						}
					}
					c := oncecache.MustNew(tt.Config)
					same := func(_ context.Context, k int) (int, error) { return k, nil }
					var leases []oncecache.Lease[int, int]
					for i := range 10 {
						k := i % 5 // two leases of each
						l, err := c.Acquire(t.Context(), k, same)
						if err != nil {
							t.Fatal(err)
						}
						leases = append(leases, l)
					}
					synctest.Wait()
					held := func() (keys []int) {
						for _, k := range sorted(c) {
							if k < 100 {
								keys = append(keys, k)
							}
						}
						return keys
					}
					for i, want := range [][]int{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}} {
						tt.press(c)
						if got := held(); !slices.Equal(got, want) || closed.Load() != 0 {
							t.Fatalf("%v are left, %d closed", got, closed.Load())
						}
						leases[i].Release() // the other one holds it
					}
					leases[5].Release()
					leases[7].Release()
					tt.press(c)
					tt.press(c)
					synctest.Wait()
					if got := held(); !slices.Equal(got, []int{1, 3, 4}) || closes && closed.Load() != 2 {
						t.Errorf("%v are left, %d closed", got, closed.Load())
					}
					for i := range leases {
						if v := i % 5; i > 2 && i != 5 && i != 7 && leases[i].Value() != v {
							t.Errorf("the lease of %d has %d", v, leases[i].Value())
						}
						leases[i].Release()
					}
					tt.press(c)
					tt.press(c)
					synctest.Wait()
					if got := held(); got != nil || closes && closed.Load() != 5 {
						t.Errorf("%v are left at the end, %d closed", got, closed.Load())
					}
					if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
						t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
					}
				})
			})
		}
	}
}

// What goes at one time has left the cache before any of it is closed.
func TestEvictedAreGoneBeforeTheyAreClosed(t *testing.T) {
	for name, tt := range map[string]struct {
		config
		n     int
		press func(c *oncecache.Cache[string, int], free func())
	}{
		"IdleTimeout": {config{IdleTimeout: time.Minute}, 50 /* fewer than a sweep looks at at a time */, func(_ *oncecache.Cache[string, int], free func()) { free(); time.Sleep(time.Hour) }},
		"MaxEntries":  {config{MaxEntries: 1}, 10_000, func(c *oncecache.Cache[string, int], free func()) { free(); c.Set("new", -1) }},
		"Clear":       {config{}, 10_000, func(c *oncecache.Cache[string, int], free func()) { free(); c.Clear() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *oncecache.Cache[string, int]
				var seen atomic.Int64
				tt.Close = func(_ string, v int) error {
					if n := c.Len(); v >= 0 && n > 1 {
						seen.Store(int64(n))
					}
					return nil
				}
				c = oncecache.MustNew(tt.config)
				var leases []oncecache.Lease[string, int]
				for i := range tt.n {
					l, err := c.Acquire(context.Background(), fmt.Sprint(i), makes(i))
					if err != nil {
						t.Fatal(err)
					}
					leases = append(leases, l)
				}
				tt.press(c, func() {
					synctest.Wait() // until all have taken their places
					for i := range leases {
						leases[i].Release()
					}
				})
				synctest.Wait()
				if closed := c.Stats().Closed; closed != uint64(tt.n) || seen.Load() != 0 {
					t.Errorf("%d are closed; %d were there then", closed, seen.Load())
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
