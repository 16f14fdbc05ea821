//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

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
	for n, c := range map[int]*oncecache.Cache[string, int]{
		3: oncecache.MustNew(config{}), 1: oncecache.MustNew(config{CloseBeforeCreate: true, Close: func(string, int) error { return nil }}),
	} {
		synctest.Test(t, func(t *testing.T) {
			var flights []context.Context
			for range n {
				p := newPilot()
				defer func() { p.end <- with(1) }()
				asks(t, c, p.create)
				flights = append(flights, <-p.ctx)
				c.Delete("k")
			}
			if err := c.Close(ended(t)); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			for i, f := range flights {
				if context.Cause(f) != oncecache.ErrClosed {
					t.Errorf("flight %d of %d: %v", i, n, context.Cause(f))
				}
			}
		})
	}
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

// Whoever comes after Close finds what Close has left, and may close
// values too: so many that the table of claims grows.
func TestAfterACloseThatHasNotWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		hang := make(chan struct{})
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { <-hang; return nil }})
		for k := range 30 {
			c.Set(k, k)
		}
		c.Close(ended)
		c.Clear()
		var late sync.WaitGroup
		for k := range 500 {
			late.Go(func() { c.Set(k, -k) })
		}
		synctest.Wait()
		close(hang)
		late.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := oncecache.Claims(c); n != 0 {
			t.Errorf("%d claims are left", n)
		}
	})
}

// Close names what it has not waited for, and waits for it the next time.
func TestCloseNamesWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := oncecache.MustNew(config{Close: func(string, int) error { <-hang; return nil }})
		oncecache.LimitClosers(c, 1)
		for _, k := range []string{"value 1", "value 2", "value 3", "leased"} {
			c.Set(k, 1)
		}
		lease, err := c.Acquire(t.Context(), "leased", notAsked)
		if err != nil {
			t.Fatal(err)
		}
		gone, err := c.Acquire(t.Context(), "gone", makes(2))
		if err != nil {
			t.Fatal(err)
		}
		c.Delete("gone")
		flight := begin(t, c, "flight")
		hidden := begin(t, c, "hidden")
		c.Delete("hidden")
		deleted := startCall(func() (int, error) { v, _ := c.Delete("value 3"); return v, nil })
		refresh := newPilot()
		refreshed := startCall(func() (int, error) { return c.Refresh(t.Context(), "value 1", anew(refresh.create)) })
		synctest.Wait()

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errRefused)
		defer cancel()
		for range 2 {
			err = c.Close(ctx)
			var pending *oncecache.PendingError
			if !errors.As(err, &pending) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Close returns %v", err)
			}
			for what, tt := range map[string]struct{ got, want []any }{
				"creating": {pending.Creating, []any{"flight", "hidden", "value 1"}},
				"leased":   {pending.Leased, []any{"gone", "leased", "value 1"}}, // by the Refresh
				"closing":  {pending.Closing, []any{"value 2", "value 3"}},
			} {
				slices.SortFunc(tt.got, func(a, b any) int { return slices.Compare([]byte(a.(string)), []byte(b.(string))) })
				if !slices.Equal(tt.got, tt.want) {
					t.Errorf("%s %v, want %v", what, tt.got, tt.want)
				}
			}
		}

		// The closing goes on, and the next Close waits again.
		again := startCall(func() (int, error) { return 0, c.Close(t.Context()) })
		for _, release := range []func(){
			func() { flight.end <- with(3) },
			func() { hidden.end <- with(4) },
			func() { refresh.end <- with(5) },
			lease.Release,
			gone.Release,
		} {
			synctest.Wait()
			select {
			case <-again.done:
				t.Fatalf("Close returns %v before all is over", again.err)
			default:
			}
			go release()
		}
		synctest.Wait()
		close(hang)
		wantAll(t, []*call{again}, result{})
		wantAll(t, []*call{deleted}, result{value: 1})
		wantAll(t, []*call{refreshed}, result{err: oncecache.ErrClosed})
		if n := c.Stats().Closed; n != 8 || oncecache.Pending(c) != 0 {
			t.Errorf("%d closed, %d pending", n, oncecache.Pending(c))
		}
	})
}

// The keys are named oldest first, also after some that came before have gone.
func TestPendingErrorIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		var leases []*oncecache.Lease[string, int]
		var functions []*creation
		want := []any{"k1", "k2", "k3", "k4"}
		for i := range 5 {
			k := fmt.Sprint("k", i)
			leases = append(leases, s.acquire(t, k, i))
			s.Delete(k)
		}
		for i := range 5 {
			k := fmt.Sprint("k", i)
			functions = append(functions, begin(t, s.Cache, k))
			s.Delete(k)
		}
		leases[0].Release()
		functions[0].end <- with(1)
		functions[0].wait(t)
		var pending *oncecache.PendingError
		for range 5 { // maps have no order
			if err := s.Close(ended(t)); !errors.As(err, &pending) || !slices.Equal(pending.Creating, want) || !slices.Equal(pending.Leased, want) {
				t.Fatalf("Close returns %v, want %v twice", err, want)
			}
		}
		for i := 1; i < 5; i++ {
			leases[i].Release()
			functions[i].end <- with(1)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What was in the backlog is garbage afterwards, and so is the room for much of it.
func TestBacklogIsLetGo(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, *[64]byte]{MaxEntries: 1000, Close: func(int, *[64]byte) error { return nil }})
	create := func(context.Context, int) (*[64]byte, error) { return new([64]byte), nil }
	var leases []oncecache.Lease[int, *[64]byte]
	var values []weak.Pointer[[64]byte]
	acquire := func(k int) {
		l, err := c.Acquire(t.Context(), k, create)
		if err != nil {
			t.Fatal(err)
		}
		leases, values = append(leases, l), append(values, weak.Make(l.Value()))
		c.Delete(k)
	}
	release := func() {
		for i := range leases {
			leases[i].Release()
		}
		leases = nil
	}
	acquire(1)
	acquire(2)
	release()
	for _, v := range values {
		collect(t, func() bool { return v.Value() == nil })
	}
	for k := range 1000 {
		acquire(k)
	}
	release()
	for k := range 1000 {
		c.Set(k, new([64]byte))
	}
	c.Clear()
	c.GetOrCreate(0, func() (*[64]byte, error) { c.Delete(0); return nil, nil })
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	collect(t, func() bool { return oncecache.BacklogIsSmall(c) }) // the closers of Clear are a few steps from their end
}

// The text names a few of the keys.
func TestPendingErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		var leases []oncecache.Lease[string, int]
		for i := range 7 {
			l, err := c.Acquire(t.Context(), fmt.Sprint("k", i), makes(i))
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
			c.Delete(fmt.Sprint("k", i))
		}
		flight := begin(t, c, "slow")
		want := "oncecache: not closed in time; creating slow; leased k0, k1, k2, k3, k4 and 2 more: context canceled"
		if err := c.Close(ended(t)); err == nil || err.Error() != want {
			t.Errorf("Close returns\n%v, want\n%s", err, want)
		}
		flight.end <- with(1)
		for i := range leases {
			leases[i].Release()
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What a batch has held, and waits to be closed, is named once: no lease holds it.
func TestPendingErrorAfterABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := oncecache.MustNew(config{Close: func(string, int) error { <-hang; return nil }})
		oncecache.LimitClosers(c, 1)
		c.Set("hangs", 1)
		c.Clear()
		synctest.Wait()
		c.Set("held", 1)
		_, err := c.GetOrCreateMany(t.Context(), []string{"held", "new"}, func(_ context.Context, keys []string) (map[string]int, error) {
			c.Delete("held")
			return map[string]int{"new": 2}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var pending *oncecache.PendingError
		if err := c.Close(ended(t)); !errors.As(err, &pending) {
			t.Fatalf("Close returns %v", err)
		}
		if want := []any{"hangs", "held", "new"}; len(pending.Leased) != 0 || len(pending.Creating) != 0 || !slices.Equal(pending.Closing, want) {
			t.Errorf("leased %v, creating %v, closing %v, want %v", pending.Leased, pending.Creating, pending.Closing, want)
		}
		close(hang)
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
		}
	})
}

// The value of the last lease is named as one that is being closed, and as nothing
// when its Close function has returned.
func TestPendingErrorAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := oncecache.MustNew(config{Close: func(k string, _ int) error {
			if k == "held" {
				<-hang
			}
			return nil
		}})
		held, err := c.Acquire(t.Context(), "held", makes(1))
		if err != nil {
			t.Fatal(err)
		}
		other, err := c.Acquire(t.Context(), "other", makes(2))
		if err != nil {
			t.Fatal(err)
		}
		c.Delete("held")
		released := startCall(func() (int, error) { held.Release(); return 0, nil })
		synctest.Wait()
		named := func(closing ...any) {
			t.Helper()
			var pending *oncecache.PendingError
			if err := c.Close(ended(t)); !errors.As(err, &pending) {
				t.Fatalf("Close returns %v", err)
			}
			if !slices.Equal(pending.Leased, []any{"other"}) || !slices.Equal(pending.Closing, closing) {
				t.Errorf("leased %v, closing %v, want %v", pending.Leased, pending.Closing, closing)
			}
		}
		named("held")
		close(hang)
		released.wait(t)
		named()
		other.Release()
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
		}
	})
}

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// When the first Close function begins, all who wait for any key have been told,
// and so are all who come; a function that hangs does not matter.
func TestCloseTellsAllBeforeItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, values = 40, 20_000 // so that it takes a while to remove them
		hang := make(chan struct{})
		var c *oncecache.Cache[string, int]
		var flights []context.Context
		var running sync.Mutex
		first := true
		c = oncecache.MustNew(config{Close: func(k string, _ int) error {
			running.Lock()
			if first {
				for i, f := range flights {
					if context.Cause(f) != oncecache.ErrClosed {
						t.Errorf("flight %d is not called off when %q is closed", i, k)
					}
				}
			}
			first = false
			running.Unlock()
			<-hang
			return nil
		}})
		end := make(chan struct{})
		var waiters []*call
		for i := range values {
			c.Set(fmt.Sprint("value ", i), i)
		}
		for i := range keys {
			begun := make(chan context.Context)
			for j, w := range ways {
				if w.name == "Refresh" {
					continue // whose key would have to have a value
				}
				create := func(ctx context.Context, _ string) (int, error) { begun <- ctx; <-end; return 1, nil }
				if j > 0 {
					create = notAsked
				}
				ctx := t.Context()
				x := startCall(func() (int, error) {
					if j == 0 { // so that it can be called off
						return c.GetOrCreateContext(ctx, fmt.Sprint("flight ", i), create)
					}
					return w.ask(ctx, c, fmt.Sprint("flight ", i), create)
				})
				if j == 0 {
					flights = append(flights, <-begun)
				}
				waiters = append(waiters, x)
			}
		}
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		closing := startCall(func() (int, error) { return 0, c.Close(ctx) })
		wantAll(t, waiters, result{err: oncecache.ErrClosed})
		for i := range keys {
			for _, w := range ways {
				for _, k := range []string{"value", "flight", "new"} {
					k = fmt.Sprint(k, " ", i)
					if v, err := w.ask(t.Context(), c, k, notAsked); v != 0 || err != oncecache.ErrClosed {
						t.Errorf("%s of %q: %d, %v", w.name, k, v, err)
					}
				}
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("they are told after %v", d)
		}
		if r := closing.wait(t); !errors.Is(r.err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("Close returns %v after %v", r.err, time.Since(began))
		}
		close(hang)
		close(end)
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
		}
		if n := c.Stats().Closed; n != keys+values {
			t.Errorf("%d values closed, want %d", n, keys+values)
		}
	})
}

// gauge is how many functions run at a time.
type gauge struct{ now, most atomic.Int32 }

func (g *gauge) sleep(d time.Duration) {
	n := g.now.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	time.Sleep(d)
	g.now.Add(-1)
}

// A Close function that hangs counts among those that run at a time, however many end
// beside it.
func TestCloseConcurrencyBesideAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var run gauge
		c := oncecache.MustNew(config{Close: func(k string, _ int) error {
			if k != "hangs" {
				run.sleep(time.Second)
				return nil
			}
			<-hang
			return nil
		}})
		oncecache.LimitClosers(c, 2)
		c.Set("hangs", 0)
		c.Clear()
		for range 3 {
			for _, k := range []string{"a", "b", "c"} {
				c.Set(k, 1)
			}
			c.Clear()
			time.Sleep(time.Minute)
		}
		if n := run.most.Load(); n != 1 {
			t.Errorf("%d run beside the one that hangs, want 1", n)
		}
		close(hang)
		if err := c.Close(t.Context()); err != nil || c.Stats().Closed != 10 {
			t.Errorf("%v, %d closed", err, c.Stats().Closed)
		}
	})
}

// So many Close functions run at a time on goroutines of the cache as they may,
// and never more, whatever lets the values go.
func TestCloseConcurrency(t *testing.T) {
	const values = 48
	for name, let := range map[string]func(t *testing.T, c *oncecache.Cache[string, int]){
		"Close": func(t *testing.T, c *oncecache.Cache[string, int]) { c.Close(ended(t)) },
		"Clear": func(_ *testing.T, c *oncecache.Cache[string, int]) { c.Clear() },
		"Sweep": func(_ *testing.T, c *oncecache.Cache[string, int]) { time.Sleep(24 * time.Hour) },
		"MaxEntries": func(_ *testing.T, c *oncecache.Cache[string, int]) {
			for i := range values {
				c.Set(fmt.Sprint("new ", i), -1)
			}
		},
		"a batch": func(t *testing.T, c *oncecache.Cache[string, int]) {
			c.GetOrCreateMany(t.Context(), []string{"new"}, func(context.Context, []string) (map[string]int, error) {
				made := map[string]int{"new": -1}
				for i := range values {
					made[fmt.Sprint("not asked for ", i)] = i
				}
				c.Clear()
				return made, nil
			})
		},
	} {
		for _, limit := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var running gauge
					cfg := config{Close: func(_ string, v int) error {
						if v >= 0 {
							running.sleep(time.Minute)
						}
						return nil
					}}
					switch name {
					case "Sweep":
						cfg.IdleTimeout = 24 * time.Hour
					case "MaxEntries":
						cfg.MaxEntries = values
					}
					c := oncecache.MustNew(cfg)
					if limit > 0 {
						oncecache.LimitClosers(c, limit)
					}
					for i := range values {
						c.Set(fmt.Sprint(i), i)
					}
					let(t, c)
					synctest.Wait()
					began := time.Now()
					for c.Stats().Closed < values {
						time.Sleep(time.Second)
					}
					c.Close(t.Context())
					if limit == 0 {
						limit = 16
					}
					if n := int(running.most.Load()); n != limit {
						t.Errorf("%d run at a time, want %d", n, limit)
					}
					want := time.Duration(values/limit) * time.Minute
					if name == "a batch" {
						want *= 2
					}
					if d := time.Since(began); name != "Sweep" && (d < want-time.Second || d > want+time.Second) {
						t.Errorf("all are closed after %v, want %v", d, want)
					}
				})
			})
		}
	}
}

// A Close function that hangs stops neither the sweeps, nor what makes room, nor
// anything that is done with other keys.
func TestHungCloseStopsNobody(t *testing.T) {
	for name, bound := range map[string]config{
		"idleness":   {IdleTimeout: time.Minute},
		"MaxEntries": {MaxEntries: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				bound.Close = func(k string, _ int) error {
					if k == "hangs" {
						<-hang
					}
					return nil
				}
				c := oncecache.MustNew(bound)
				c.Set("hangs", 1)
				for i := range uint64(10) {
					began := time.Now()
					for j := range 4 {
						k := fmt.Sprint(i, " ", j)
						if v, err := c.GetOrCreate(k, with(7)); v != 7 || err != nil {
							t.Fatalf("%d, %v", v, err)
						}
					}
					l, err := c.Acquire(t.Context(), "leased", makes(8))
					if err != nil {
						t.Fatal(err)
					}
					l.Discard()
					c.Set("set", 2)
					c.Delete("set")
					if d := time.Since(began); d != 0 {
						t.Errorf("others wait for %v", d)
					}
					if name == "idleness" {
						time.Sleep(3 * time.Minute)
						if n := c.Len(); n != 0 {
							t.Fatalf("%d idle values are left", n)
						}
					}
					synctest.Wait()
					// Six have come in this round, and one of all hangs.
					if got, want := c.Stats().Closed, 6*(i+1)-uint64(c.Len()); got != want {
						t.Errorf("round %d: %d are closed, want %d", i, got, want)
					}
				}
				close(hang)
				if err := c.Close(t.Context()); err != nil || c.Stats().Closed != 61 {
					t.Errorf("%v, %d closed", err, c.Stats().Closed)
				}
			})
		})
	}
}

// A value whose creation Delete has overtaken is named as long as the callers of that hold it.
func TestPendingErrorAfterAForgottenCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		gate := make(chan struct{})
		var lease oncecache.Lease[string, int]
		acquired := startCall(func() (_ int, err error) {
			lease, err = c.Acquire(t.Context(), "k", func(context.Context, string) (int, error) { <-gate; return 1, nil })
			return 0, err
		})
		synctest.Wait()
		c.Delete("k")
		close(gate)
		if r := acquired.wait(t); r.err != nil {
			t.Fatal(r.err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		var pending *oncecache.PendingError
		if err := c.Close(ended); !errors.As(err, &pending) || !slices.Equal(pending.Leased, []any{"k"}) {
			t.Errorf("%v, want k leased", err)
		}
		lease.Release()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Close returns no error of a context that ends when there is nothing left to wait for.
func TestCloseEndsBeforeItsContext(t *testing.T) {
	for range 50 { // as one of two that are ready is chosen at random
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		l, err := c.Acquire(t.Context(), "k", makes(1))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := c.Close(&awaitedContext{Context: ctx, f: func() { l.Release(); cancel() }}); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitedContext calls f when a call is about to wait for its end.
type awaitedContext struct {
	context.Context
	f func()
}

func (c *awaitedContext) Done() <-chan struct{} {
	c.f()
	return c.Context.Done()
}
