//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// To lease what is there is a use, which a search for room does not forget while the lease lasts.
func TestLeasedKeepTheirUse(t *testing.T) {
	type bounded = oncecache.Cache[int, int]
	itself := func(_ context.Context, k int) (int, error) { return k, nil }
	for name, begin := range map[string]func(t *testing.T, c *bounded) oncecache.Lease[int, int]{
		"the lease of what is there": func(t *testing.T, c *bounded) oncecache.Lease[int, int] {
			c.Set(1, 1)
			l, err := c.Acquire(t.Context(), 1, itself)
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
	} {
		for _, closes := range []bool{false, true} {
			for _, searched := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, closes %t, searched %t", name, closes, searched), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						settings := oncecache.Config[int, int]{MaxEntries: 2}
						if closes {
							settings.Close = func(int, int) error { return nil }
						}
						c := oncecache.MustNew(settings)
						l := begin(t, c)
						c.Set(2, 2)
						if searched {
							c.Set(3, 3) // passes 1, which is leased, and takes 2
							c.Get(3)    // so that the next one comes to 1 again
						}
						l.Release()
						if c.Set(4, 4); !slices.Contains(sorted(c), 1) || c.Len() != 2 {
							t.Errorf("%v are left", sorted(c))
						}
						if err := c.Close(t.Context()); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// What a batch has made is as if each key had been created alone: nobody has used it yet, though
// the batch holds it until it returns.
func TestBatchIsNoUseOfWhatItMakes(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			settings := oncecache.Config[int, int]{MaxEntries: 2}
			if closes {
				settings.Close = func(int, int) error { return nil }
			}
			c := oncecache.MustNew(settings)
			if _, err := c.GetOrCreateMany(t.Context(), []int{1}, func(context.Context, []int) (map[int]int, error) {
				time.Sleep(time.Second)
				return map[int]int{1: 1}, nil
			}); err != nil {
				t.Fatal(err)
			}
			c.Set(2, 2)
			if c.Set(3, 3); !slices.Equal(sorted(c), []int{2, 3}) {
				t.Errorf("closes: %t: %v are left", closes, sorted(c))
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
