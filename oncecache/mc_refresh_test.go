//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A new value takes the place of the old one, unless something comes first.
func TestProtocolsOfRefresh(t *testing.T) {
	there := func(e *estate) { e.set(1, 1) }
	refresh := func(v int) func(*estate) {
		return func(e *estate) {
			_, err := e.c.Refresh(context.Background(), 1, e.make(v))
			e.wantError(err, oncecache.ErrClosed)
		}
	}
	// alone is refresh where nothing but others like it may come between: whoever
	// has made a value gets that.
	alone := func(v int) func(*estate) {
		return func(e *estate) {
			if got, err := e.c.Refresh(context.Background(), 1, e.make(v)); err != nil || e.made[v] && got != v {
				e.m.Failf("%d, %v of a Refresh that has made %d", got, err, v)
			}
		}
	}
	for _, s := range []scene{
		{"two refresh", oncecache.Config[int, int]{}, there, []func(*estate){alone(2), alone(3)}, nil},
		{"Set", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.set(1, 5) }}, func(e *estate) {
			if v, ok := e.c.Get(1); !ok || v == 1 {
				e.m.Failf("%d, %v is left", v, ok)
			}
		}},
		{"Delete", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.c.Delete(1) }}, nil},
		{"a lease", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.hold(1, 3) }}, nil},
		{"Close", oncecache.Config[int, int]{}, there, []func(*estate){refresh(2), func(e *estate) { e.c.Close(context.Background()) }}, nil},
	} {
		s.run(t)
	}
}

// What a renewal makes after its time is nobody's, whoever makes another value
// meanwhile.
func TestRefreshTooLate(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Refresh, which times out; its function returns after all ∥ Refresh"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{CreateTimeout: 1})
		c.Set(1, 1)
		late := atomics.MakeEvent()
		ctx, _ := atomics.WithCancel(context.Background())
		m.Go(func() {
			_, err := c.Refresh(ctx, 1, func(ctx context.Context, _ int) (int, error) {
				never := atomics.MakeEvent()
				_ = never.WaitContext(ctx)
				late.Fire()
				return 2, nil
			})
			if err != oncecache.ErrCreateTimeout {
				m.Failf("%v", err)
			}
		})
		m.Go(func() {
			late.Wait()
			if v, err := c.Refresh(ctx, 1, func(context.Context, int) (int, error) { return 3, nil }); err == nil && v != 3 {
				m.Failf("value %d", v)
			}
		})
		m.Final(func() {
			if v, ok := c.Get(1); !ok || v == 2 {
				m.Failf("%d, %v is left", v, ok)
			}
			if err := c.Close(context.Background()); err != nil {
				m.Failf("closed with %v", err)
			}
		})
	})
}
