//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

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

// Close names what it has not waited for, and waits for it the next time.
func TestCloseNamesWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := oncecache.MustNew(config{CloseConcurrency: 1, Close: func(string, int) error { <-hang; return nil }})
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
		refreshed := startCall(func() (int, error) { return c.Refresh(t.Context(), "value 1", refresh.create) })
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
				"leased":   {pending.Leased, []any{"gone", "leased"}},
				"closing":  {pending.Closing, []any{"value 1", "value 2", "value 3"}},
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
		c := oncecache.MustNew(config{CloseConcurrency: 1, Close: func(string, int) error { <-hang; return nil }})
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

// gauge is how many functions run at a time.
type gauge struct{ now, most atomic.Int32 }

func (g *gauge) sleep(d time.Duration) {
	n := g.now.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	time.Sleep(d)
	g.now.Add(-1)
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
					cfg := config{CloseConcurrency: limit, Close: func(_ string, v int) error {
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
