//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// A call that finds a value or an error whose time is over, and then a closed cache, gets
// ErrClosed or what it creates.
func TestClosedBesideWhatIsOver(t *testing.T) {
	var (
		makesTwo = func() (int, error) { return 2, nil }
		fails    = func() (int, error) { return 0, errors.New("not today") }
	)
	values := oncecache.Config[int, int]{TTLFunc: func(int, int) time.Duration { return 0 }}
	failures := oncecache.Config[int, int]{MaxEntries: 1, ErrorTTL: time.Millisecond}
	set := func(c *oncecache.Cache[int, int]) { c.Set(1, 1) }
	ask := map[string]func(c *oncecache.Cache[int, int]) (int, error){
		"GetOrCreate": func(c *oncecache.Cache[int, int]) (int, error) { return c.GetOrCreate(1, makesTwo) },
		"GetOrCreateContext": func(c *oncecache.Cache[int, int]) (int, error) {
			return c.GetOrCreateContext(context.Background(), 1, func(context.Context, int) (int, error) { return makesTwo() })
		},
		"Refresh": func(c *oncecache.Cache[int, int]) (int, error) {
			return c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) { return makesTwo() })
		},
	}
	for name, call := range ask {
		t.Run("a value, "+name, func(t *testing.T) {
			mc.Check(t, twice.of("TTL is over: Set ∥ "+name+" ∥ Close"), func(m *mc.M) {
				c := oncecache.MustNew(values)
				m.Go(func() { set(c) })
				endsClosed(m, c, call)
			})
		})
		t.Run("an error, "+name, func(t *testing.T) {
			mc.Check(t, twice.of("ErrorTTL is over: "+name+" ∥ Close"), func(m *mc.M) {
				c := oncecache.MustNew(failures)
				c.GetOrCreate(1, fails)
				m.Advance(2 * time.Millisecond)
				endsClosed(m, c, call)
			})
		})
	}
}

// endsClosed makes a call for a key beside Close.
func endsClosed(m *mc.M, c *oncecache.Cache[int, int], call func(*oncecache.Cache[int, int]) (int, error)) {
	m.Go(func() {
		switch v, err := call(c); {
		case err == nil && (v == 1 || v == 2): // Set may have ended its creation
		case errors.Is(err, oncecache.ErrClosed):
		default:
			m.Failf("%d, %v", v, err)
		}
	})
	m.Go(func() {
		if err := c.Close(context.Background()); err != nil {
			m.Failf("Close returns %v", err)
		}
	})
	m.Final(func() {
		if n := c.Len(); n != 0 {
			m.Failf("%d values are left in a closed cache", n)
		}
	})
}
