//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

func TestClosedCache(t *testing.T) {
	for name, open := range map[string]func() *oncecache.Cache[string, int]{
		"zero": func() *oncecache.Cache[string, int] { return new(oncecache.Cache[string, int]) },
		"used": func() *oncecache.Cache[string, int] {
			c := new(oncecache.Cache[string, int])
			c.Set("k", 1)
			c.Set("l", 2)
			return c
		},
		"new":     func() *oncecache.Cache[string, int] { return oncecache.MustNew(oncecache.Config[string, int]{}) },
		"closing": func() *oncecache.Cache[string, int] { s := newShop(); s.Set("k", 1); return s.Cache },
	} {
		t.Run(name, func(t *testing.T) {
			c := open()
			for range 2 {
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if v, err := c.GetOrCreate("k", unexpected(t)); v != 0 || err != oncecache.ErrClosed {
					t.Error(v, err)
				}
				create := func(context.Context, string) (int, error) { t.Error("create called"); return 0, nil }
				for _, ctx := range []context.Context{t.Context(), context.Background()} {
					if v, err := c.GetOrCreateContext(ctx, "k", create); v != 0 || err != oncecache.ErrClosed {
						t.Error(v, err)
					}
					if l, err := c.Acquire(ctx, "k", create); err != oncecache.ErrClosed {
						t.Error(l.Value(), err)
					}
				}
				if old, replaced := c.Set("k", 3); old != 0 || replaced {
					t.Error(old, replaced)
				}
				if stored(c.SetIfAbsent("k", 4)) {
					t.Error("SetIfAbsent stored")
				}
				if old, deleted := c.Delete("k"); old != 0 || deleted {
					t.Error(old, deleted)
				}
				if oncecache.CompareAndDelete(c, "k", 1) {
					t.Error("CompareAndDelete deleted")
				}
				wantAbsent(t, c, "k")
				wantLen(t, c, 0)
			}
		})
	}
}

func TestCloseNilContext(t *testing.T) {
	var c oncecache.Cache[string, int]
	if p := panicOf(func() { c.Close(noContext) }); p != "oncecache: Close called with a nil context" {
		t.Error(p)
	}
	c.Set("k", 1)
	wantGet(t, &c, "k", 1)
}

// Close closes every value that is there, each once, and what Set brings later.
func TestCloseClosesAll(t *testing.T) {
	s := newShop()
	for i := range 1000 {
		s.Set(fmt.Sprint(i), i)
	}
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	seen := map[int]bool{}
	for _, v := range s.closed {
		if seen[v] {
			t.Errorf("%d was closed twice", v)
		}
		seen[v] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d values closed, want 1000", len(seen))
	}
	s.closed = nil
	s.Set("late", 7)
	s.wantClosed(t, 7)
}

// Close ends creations: their callers get ErrClosed at once, their contexts are
// cancelled, Close waits for their functions, and a value that comes late is
// closed (T22, database/sql).
func TestCloseInFlight(t *testing.T) {
	for _, tt := range endings {
		for _, hidden := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, ", deleted ", hidden), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newShop()
					p := newPilot()
					owner := asks(t, s.Cache, p.create)
					flight := <-p.ctx
					joined, plain := asks(t, s.Cache, nil), start(s.Cache, "k", unexpected(t))
					synctest.Wait()
					if hidden {
						s.Delete("k")
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Close returns %v while a function runs", err)
					}
					if context.Cause(flight) != oncecache.ErrClosed {
						t.Errorf("cancelled: %v", context.Cause(flight))
					}
					all := []*call{owner.call, joined.call, plain}
					if !hidden {
						wantAll(t, all, result{err: oncecache.ErrClosed})
					}
					var err error
					again := startCall(func() (int, error) { err = s.Close(t.Context()); return 0, nil })
					synctest.Wait()
					p.end <- tt.end
					again.wait(t)
					if hidden {
						want := result{err: oncecache.ErrClosed}
						if tt.name == "value" {
							want = result{value: 7} // made for them, and theirs
						}
						wantAll(t, all, want)
					}
					if tt.name == "value" {
						s.wantClosed(t, 7)
					}
					if (err != nil) != (tt.name == "panic") {
						t.Errorf("Close returns %v", err)
					}
				})
			})
		}
	}
}

// The same for a creator that runs its function itself.
func TestCloseInPlainFlight(t *testing.T) {
	for _, tt := range endings {
		synctest.Test(t, func(t *testing.T) {
			s := newShop()
			owner := begin(t, s.Cache, "k")
			joined := start(s.Cache, "k", unexpected(t))
			synctest.Wait()
			closing := startCall(func() (int, error) { return 0, s.Close(t.Context()) })
			wantAll(t, []*call{joined}, result{err: oncecache.ErrClosed})
			owner.end <- tt.end
			want := result{err: oncecache.ErrClosed}
			if tt.owner.panicked != nil || tt.owner.exited {
				want = tt.owner
			}
			wantAll(t, []*call{owner.call}, want)
			wantAll(t, []*call{closing}, result{})
			if tt.name == "value" {
				s.wantClosed(t, 7)
			}
		})
	}
}

// Close waits for leases until its context ends, any number of times, and
// returns when there are none.
func TestCloseWaitsForLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		a, b := s.acquire(t, "k", 1), s.acquire(t, "k", -1)
		s.Delete("k")
		c := s.acquire(t, "k", 2)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 {
			if err := s.Close(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("Close returns %v, want the context's error", err)
			}
		}
		closing := []*call{}
		for range 3 {
			closing = append(closing, startCall(func() (int, error) { return 0, s.Close(t.Context()) }))
		}
		for _, l := range []*oncecache.Lease[string, int]{b, c, a} {
			synctest.Wait()
			select {
			case <-closing[0].done:
				t.Error("Close returns before the last lease is released")
			default:
			}
			l.Release()
		}
		wantAll(t, closing, result{})
		s.wantClosed(t, 2, 1)
		if err := s.Close(ended); err != nil {
			t.Errorf("Close of a cache that is closed returns %v", err)
		}
	})
}

// The functions of the user may close the cache, which waits for them in vain.
func TestCloseFromWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		closes := func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return s.Close(ctx)
		}
		s.fail = func(int) error { s.fail = func(int) error { return nil }; return closes() }
		v, err := s.GetOrCreate("k", func() (int, error) {
			if err := closes(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close in create returns %v", err)
			}
			return 1, nil
		})
		if v != 0 || err != oncecache.ErrClosed {
			t.Error(v, err)
		}
		s.wantClosed(t, 1)
		if err := s.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returns %v, want what Config.Close returned", err)
		}
	})
}

// What Close keeps of failures is bounded.
func TestTooManyTroubles(t *testing.T) {
	for n, more := range map[int]string{1: "", 100: "", 101: "oncecache: and 1 more errors", 150: "oncecache: and 50 more errors"} {
		s := newShop()
		s.fail = func(v int) error { return fmt.Errorf("value %d", v) }
		var want []string
		for i := range n {
			s.Set("k", i)
			if i < 100 {
				want = append(want, fmt.Sprint("value ", i))
			}
		}
		if more != "" {
			want = append(want, more)
		}
		if err := s.Close(t.Context()); err == nil || err.Error() != strings.Join(want, "\n") {
			t.Errorf("%d errors: %v", n, err)
		}
	}
}

// Close finds all flights that Delete has hidden.
func TestCloseFindsHiddenFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		var flights []context.Context
		for range 3 {
			p := newPilot()
			defer func() { p.end <- with(1) }()
			asks(t, &c, p.create)
			flights = append(flights, <-p.ctx)
			c.Delete("k")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Close(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for i, f := range flights {
			if context.Cause(f) != oncecache.ErrClosed {
				t.Errorf("flight %d: %v", i, context.Cause(f))
			}
		}
	})
}

// Flights that Delete has hidden are not kept beyond their end.
func TestHiddenFlightsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		for range 50 {
			p := newPilot()
			owner := asks(t, &c, p.create)
			<-p.ctx
			c.Delete("k")
			if n := oncecache.Hidden(&c); n > 1 {
				t.Fatalf("%d flights hidden, want 1", n)
			}
			p.end <- with(1)
			owner.wait(t)
			if n := oncecache.Hidden(&c); n != 0 {
				t.Fatalf("%d flights hidden after their end", n)
			}
		}
	})
}
