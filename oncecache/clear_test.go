//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Clear counts values only, drops errors that are kept, and forgets creations:
// their callers get what they make, which is not kept.
func TestClear(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			s := newShop()
			c := oncecache.MustNew(config{
				Close:    func(_ string, v int) error { s.closed = append(s.closed, v); return nil },
				ErrorTTL: func(string, error) time.Duration { return -1 }, CloseConcurrency: 1,
			})
			s.Cache = c
			if n := c.Clear(); n != 0 {
				t.Errorf("%d removed from an empty cache", n)
			}
			c.Set("value", 1)
			leased := s.acquire(t, "leased", 2)
			c.GetOrCreate("failed", failing)
			p := newPilot()
			flight := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", p.create) })
			<-p.ctx
			joined := start(c, "k", unexpected(t))
			synctest.Wait()
			if n := c.Clear(); n != 2 {
				t.Errorf("%s: %d removed, want 2", w.name, n)
			}
			wantLen(t, c, 0)
			if n := oncecache.Kept(c); n != 0 {
				t.Errorf("%d errors are kept", n)
			}
			synctest.Wait()
			s.wantClosed(t, 1)
			if v, err := c.GetOrCreate("failed", with(4)); v != 4 || err != nil {
				t.Errorf("%d, %v after the error was cleared", v, err)
			}
			if v, err := c.GetOrCreate("k", with(5)); v != 5 || err != nil {
				t.Errorf("%d, %v while the forgotten creation runs", v, err)
			}
			p.end <- with(3)
			wantAll(t, []*call{flight, joined}, result{value: 3})
			synctest.Wait()
			s.wantClosed(t, 1, 3)
			wantGet(t, c, "k", 5)
			leased.Release()
			s.wantClosed(t, 1, 3, 2)
			if n := c.Clear(); n != 2 {
				t.Errorf("%s: %d removed, want 2", w.name, n)
			}
			if err := c.Close(t.Context()); err != nil || len(s.closed) != 5 || oncecache.Pending(c) != 0 {
				t.Errorf("%v, closed %v", err, s.closed)
			}
			if n := c.Clear(); n != 0 {
				t.Errorf("%d removed from a closed cache", n)
			}
		})
	}
	var zero oncecache.Cache[string, int]
	if n := zero.Clear(); n != 0 {
		t.Errorf("%d removed from a zero cache", n)
	}
}

// Clear does not wait for Close functions, and none of them ends its goroutine.
func TestClearWaitsForNoClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { time.Sleep(time.Hour); runtime.Goexit(); return nil }})
		for i := range 100 {
			c.Set(fmt.Sprint(i), i)
		}
		began := time.Now()
		cleared := startCall(func() (int, error) { return c.Clear(), nil })
		wantAll(t, []*call{cleared}, result{value: 100})
		if d := time.Since(began); d != 0 {
			t.Errorf("cleared after %v", d)
		}
		if err := c.Close(t.Context()); err == nil || c.Stats().Closed != 100 {
			t.Errorf("%v, %d closed", err, c.Stats().Closed)
		}
	})
}

// LoadOrCreate tells whether its own function has made what it returns.
func TestLoadOrCreate(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(c *oncecache.Cache[string, int]) // the call
		during func(c *oncecache.Cache[string, int]) // its function
		want   int
		loaded bool
		called bool
	}{
		"a hit":                {func(c *oncecache.Cache[string, int]) { c.Set("k", 1) }, nil, 1, true, false},
		"its own":              {nil, nil, 7, false, true},
		"deleted in flight":    {nil, func(c *oncecache.Cache[string, int]) { c.Delete("k") }, 7, false, true},
		"set in flight":        {nil, func(c *oncecache.Cache[string, int]) { c.Set("k", 5) }, 5, true, true},
		"deleted and set":      {nil, func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.Set("k", 5) }, 7, false, true},
		"somebody else's":      {func(c *oncecache.Cache[string, int]) { go c.GetOrCreate("k", slow(3)) }, nil, 3, true, false},
		"somebody's who fails": {func(c *oncecache.Cache[string, int]) { go c.GetOrCreate("k", failing) }, nil, 7, false, true},
		"an heir's": {func(c *oncecache.Cache[string, int]) {
			ctx, cancel := context.WithCancel(context.Background())
			go c.GetOrCreateContext(ctx, "k", func(context.Context, string) (int, error) { return slow(3)() })
			synctest.Wait()
			cancel()
		}, nil, 3, true, false},
	} {
		for which := range contexts(t) {
			synctest.Test(t, func(t *testing.T) {
				ctx := contexts(t)[which]
				var c oncecache.Cache[string, int]
				if tt.before != nil {
					tt.before(&c)
					synctest.Wait()
				}
				called := false
				v, loaded, err := c.LoadOrCreate(ctx, "k", func(context.Context, string) (int, error) {
					called = true
					if tt.during != nil {
						tt.during(&c)
					}
					return 7, nil
				})
				if v != tt.want || loaded != tt.loaded || err != nil || called != tt.called {
					t.Errorf("%s, %s: %d, loaded %t, %v, called %t", name, which, v, loaded, err, called)
				}
				synctest.Wait()
				wantEven(t, &c)
			})
		}
	}
}

// slow returns a function that takes a second to make v.
func slow(v int) func() (int, error) {
	return func() (int, error) { time.Sleep(time.Second); return v, nil }
}

// Errors, NaN and nil arguments are to LoadOrCreate what they are elsewhere.
func TestLoadOrCreateOddities(t *testing.T) {
	var c oncecache.Cache[float64, int]
	one := func(context.Context, float64) (int, error) { return 1, nil }
	for range 2 {
		if v, loaded, err := c.LoadOrCreate(t.Context(), nan, one); v != 1 || loaded || err != nil {
			t.Errorf("NaN: %d, %t, %v", v, loaded, err)
		}
	}
	v, loaded, err := c.LoadOrCreate(t.Context(), 1, func(context.Context, float64) (int, error) { return failing() })
	if v != 0 || loaded || err != errRefused {
		t.Errorf("%d, %t, %v", v, loaded, err)
	}
	if _, _, err := c.LoadOrCreate(ended(t), 1, one); err != context.Canceled {
		t.Error(err)
	}
	if p := panicOf(func() { c.LoadOrCreate(noContext, 1, one) }); p != "oncecache: LoadOrCreate called with a nil context" {
		t.Error(p)
	}
	if p := panicOf(func() { c.LoadOrCreate(t.Context(), 1, nil) }); p != "oncecache: LoadOrCreate called with a nil function" {
		t.Error(p)
	}
	c.Close(t.Context())
	if _, loaded, err := c.LoadOrCreate(t.Context(), 1, one); loaded || err != oncecache.ErrClosed {
		t.Error(loaded, err)
	}
}
