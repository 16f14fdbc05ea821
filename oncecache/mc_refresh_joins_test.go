//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// Who puts another value in the place of a key's, and refreshes that, gets what a function makes
// which began after that: a Refresh of the value before, which is late, ends no Refresh of this
// one, and the new value stays.
func TestLateRefreshEndsNoOther(t *testing.T) {
	for name, closes := range map[string]func(int, int) error{"nothing is closed": nil, "values are closed": func(int, int) error { return nil }} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, twice.of(name+": Refresh ∥ CompareAndDelete, SetIfAbsent, Refresh"), func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{Close: closes})
				c.Set(1, 1)
				m.Go(func() {
					if _, err := c.Refresh(context.Background(), 1, anew(makesTwo)); err != nil {
						m.Failf("%v", err)
					}
				})
				m.Go(func() {
					if !oncecache.CompareAndDelete(c, 1, 1) || !stored(c.SetIfAbsent(1, 3)) {
						return // the other one has been faster
					}
					v, err := c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return 4, nil }))
					if err != nil || v == 3 {
						m.Failf("%d, %v of a Refresh of 3, which nobody has ended", v, err)
					}
				})
				m.Final(func() {
					if v, ok := c.Get(1); !ok || v == 3 {
						m.Failf("%d, %t is left, though it was refreshed", v, ok)
					}
				})
			})
		})
	}
}

// Who has seen what a Refresh has made, and refreshes, gets what a function makes that began
// after that, whether the value is another one or the function has found nothing modified.
func TestRefreshJoinsNothingThatHasEnded(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Refresh ∥ Get, Refresh if there is the new value"}, func(m *mc.M) {
		var began atomics.Int32
		c := oncecache.MustNew(oncecache.Config[int, int]{})
		c.Set(1, 0)
		create := func(context.Context, int, int, bool) (int, error) { return int(began.Add(1)), nil }
		m.Go(func() {
			if v, err := c.Refresh(context.Background(), 1, create); err != nil || v == 0 {
				m.Failf("%d, %v", v, err)
			}
		})
		m.Go(func() {
			seen, _ := c.Get(1)
			if v, err := c.Refresh(context.Background(), 1, create); err != nil || v <= seen {
				m.Failf("%d, %v after %d was there", v, err, seen)
			}
		})
		m.Final(func() {
			if v, ok := c.Get(1); !ok || v != int(began.Load()) {
				m.Failf("%d, %t is left of %d", v, ok, began.Load())
			}
		})
	})
}
