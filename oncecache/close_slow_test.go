//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
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
