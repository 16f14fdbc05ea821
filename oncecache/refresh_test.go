//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// slowly returns a function that makes v in a second.
func slowly(v int, err error) func(context.Context, string) (int, error) {
	return func(ctx context.Context, _ string) (int, error) {
		select {
		case <-time.After(time.Second):
			return v, err
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// The old value serves until the new one is there, and is closed when its
// leases have been released.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var closings []int
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(_ string, v int) error {
			mu.Lock()
			defer mu.Unlock()
			closings = append(closings, v)
			return nil
		}})
		closed := func() []int {
			synctest.Wait() // what is closed is so when the callers have been told
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(closings)
		}
		if v, err := c.Refresh(t.Context(), "k", anew(slowly(1, nil))); v != 1 || err != nil {
			t.Fatal(v, err)
		}
		l, _ := c.Acquire(t.Context(), "k", notAsked)
		var refreshers sync.WaitGroup
		for range 3 {
			refreshers.Go(func() {
				if v, err := c.Refresh(t.Context(), "k", anew(slowly(2, nil))); v != 2 || err != nil {
					t.Error(v, err)
				}
			})
		}
		synctest.Wait()
		wantGet(t, c, "k", 1)
		n := 0
		for f := range c.InFlight() {
			if n++; f.Key != "k" || f.Waiting != 3 {
				t.Errorf("%+v", f)
			}
		}
		if n != 1 || c.Len() != 1 {
			t.Errorf("%d in flight, %d keys", n, c.Len())
		}
		refreshers.Wait()
		wantGet(t, c, "k", 2)
		if got := closed(); l.Value() != 1 || got != nil {
			t.Errorf("closed %v", got)
		}
		l.Release()
		if got := closed(); !slices.Equal(got, []int{1}) {
			t.Errorf("closed %v", got)
		}
		if got := c.Stats(); got.Created != 2 {
			t.Errorf("%+v", got)
		}

		// A failure leaves what is there, and the next call tries again.
		if _, err := c.Refresh(t.Context(), "k", anew(slowly(0, errRefused))); err != errRefused {
			t.Error(err)
		}
		wantGet(t, c, "k", 2)
		if v, err := c.Refresh(t.Context(), "k", anew(slowly(3, nil))); v != 3 || err != nil {
			t.Error(v, err)
		}
		if err := c.Close(t.Context()); err != nil || len(closed()) != 3 {
			t.Errorf("%v, closed %v", err, closed())
		}
		if oncecache.Pending(c) != 0 {
			t.Error("something is pending")
		}
		if _, err := c.Refresh(t.Context(), "k", anew(slowly(3, nil))); err != oncecache.ErrClosed {
			t.Error(err)
		}
	})
}

// What happens to the key while it is refreshed comes first.
func TestRefreshIsOvertaken(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(*oncecache.Cache[string, int])
		want   int // what the caller of Refresh gets
		left   int // what the key then has; zero: nothing
		closed int // how many values are closed before Close
	}{
		"Set":            {func(c *oncecache.Cache[string, int]) { c.Set("k", 7) }, 7, 7, 1}, // create is cancelled
		"Delete":         {func(c *oncecache.Cache[string, int]) { c.Delete("k") }, 2, 0, 2},
		"Delete and Set": {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.Set("k", 8) }, 2, 8, 2},
		"CompareAndDelete and SetIfAbsent": {func(c *oncecache.Cache[string, int]) {
			oncecache.CompareAndDelete(c, "k", 1)
			c.SetIfAbsent("k", 6)
		}, 2, 6, 2},
		"create anew": {func(c *oncecache.Cache[string, int]) {
			c.Delete("k")
			c.GetOrCreate("k", with(9))
		}, 2, 9, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Int32
			c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { closed.Add(1); return nil }})
			c.Set("k", 1)
			x := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(slowly(2, nil))) })
			synctest.Wait()
			tt.do(c)
			r := x.wait(t)
			time.Sleep(time.Minute) // what is made too late is closed when the callers have been told
			if n := int(closed.Load()); r.value != tt.want || r.err != nil || n != tt.closed {
				t.Errorf("%s: %+v, %d closed", name, r, n)
			}
			if v, _ := c.Get("k"); v != tt.left {
				t.Errorf("%s: the key has %d", name, v)
			}
			if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
				t.Error(err, oncecache.Pending(c))
			}
			wantEven(t, c)
		})
	}
}

// Refresh is called off like a creation, by its callers, by Close, by time; and
// what it makes too late is closed.
func TestRefreshIsCalledOff(t *testing.T) {
	stubborn := func(context.Context, string) (int, error) { time.Sleep(time.Hour); return 2, nil }
	for name, tt := range map[string]struct {
		timeout time.Duration
		do      func(*oncecache.Cache[string, int], context.CancelFunc)
		want    error
		left    int
	}{
		"left":      {0, func(_ *oncecache.Cache[string, int], leave context.CancelFunc) { leave() }, context.Canceled, 2},
		"timed out": {time.Minute, func(*oncecache.Cache[string, int], context.CancelFunc) { time.Sleep(time.Minute) }, oncecache.ErrCreateTimeout, 1},
		"closed": {0, func(c *oncecache.Cache[string, int], _ context.CancelFunc) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			c.Close(ended)
		}, oncecache.ErrClosed, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Int32
			c := oncecache.MustNew(oncecache.Config[string, int]{CreateTimeout: tt.timeout, Close: func(string, int) error { closed.Add(1); return nil }})
			c.Set("k", 1)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			x := startCall(func() (int, error) { return c.Refresh(ctx, "k", anew(stubborn)) })
			synctest.Wait()
			tt.do(c, leave)
			if r := x.wait(t); r.err != tt.want {
				t.Errorf("%s: %+v", name, r)
			}
			time.Sleep(2 * time.Hour)
			if v, _ := c.Get("k"); v != tt.left {
				t.Errorf("%s: the key has %d", name, v)
			}
			if err := c.Close(t.Context()); err != nil || closed.Load() != 2 || oncecache.Pending(c) != 0 {
				t.Errorf("%s: %v, %d closed", name, err, closed.Load())
			}
		})
	}
}

// Panics and cycles of Refresh are those of GetOrCreateContext.
func TestRefreshFails(t *testing.T) {
	var c oncecache.Cache[string, int]
	c.Set("k", 1)
	x := startCall(func() (int, error) {
		return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return diskFull() }))
	})
	p := new(oncecache.PanicError)
	if err, _ := x.wait(t).panicked.(error); !errors.As(err, &p) {
		t.Errorf("%+v", x.result)
	}
	within(t, time.Minute, func() {
		_, err := c.Refresh(t.Context(), "k", anew(func(ctx context.Context, k string) (int, error) {
			if v, err := c.GetOrCreateContext(ctx, k, notAsked); v != 1 || err != nil {
				t.Error(v, err) // the old one serves
			}
			return c.Refresh(ctx, k, anew(notAsked))
		}))
		wantCycle(t, err, "k", "k")
	})
	wantGet(t, &c, "k", 1)
}

// A renewal that has timed out leaves the next one alone when it ends.
func TestRefreshAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{CreateTimeout: time.Minute})
		c.Set("k", 1)
		var running atomic.Int32
		refresh := func(v int, d time.Duration) *call {
			return startCall(func() (int, error) {
				return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) {
					running.Add(1)
					time.Sleep(d)
					running.Add(-1)
					return v, nil
				}))
			})
		}
		late := refresh(2, 90*time.Second)
		time.Sleep(70 * time.Second)
		second := refresh(3, 40*time.Second)
		time.Sleep(30 * time.Second) // the first has ended
		third := refresh(4, time.Second)
		synctest.Wait()
		if n := running.Load(); n != 1 {
			t.Errorf("%d renewals at a time", n)
		}
		if r := late.wait(t); r.err != oncecache.ErrCreateTimeout {
			t.Errorf("%+v", r)
		}
		for _, x := range []*call{second, third} {
			if r := x.wait(t); r.value != 3 || r.err != nil {
				t.Errorf("%+v", r)
			}
		}
		wantGet(t, c, "k", 3)
		wantEven(t, c)
	})
}

// What comes too late is not kept, though all had left before it was; and who
// came after that does not get its error.
func TestRefreshTimesOutForHeirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{CreateTimeout: time.Minute})
		c.Set("k", 1)
		ctx, leave := context.WithCancel(t.Context())
		x := startCall(func() (int, error) {
			return c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { time.Sleep(time.Hour); return 2, nil }))
		})
		synctest.Wait()
		leave()
		if r := x.wait(t); r.err != context.Canceled {
			t.Errorf("%+v", r)
		}
		if v, err := c.Refresh(t.Context(), "k", anew(slowly(3, nil))); v != 3 || err != nil {
			t.Error(v, err)
		}
		time.Sleep(2 * time.Hour)
		wantGet(t, c, "k", 3)
	})
}

// Close calls renewals off before it closes values, which may end its goroutine.
func TestRefreshIsCalledOffThoughCloseExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { runtime.Goexit(); return nil }})
		c.Set("k", 1)
		x := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(slowly(2, nil))) })
		synctest.Wait()
		began := time.Now()
		go c.Close(t.Context())
		if r := x.wait(t); r.err != oncecache.ErrClosed || time.Since(began) != 0 {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
		synctest.Wait()
		if n := oncecache.Pending(c); n != 0 {
			t.Errorf("%d are pending", n)
		}
	})
}

// The old value may take its time to be closed, and may end its goroutine:
// those who wait for the new one have it.
func TestRefreshWaitsForNoClose(t *testing.T) {
	for name, end := range map[string]func(){"slow": func() { time.Sleep(time.Hour) }, "exits": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			var closes atomic.Int32
			c := oncecache.MustNew(oncecache.Config[string, int]{MaxEntries: 1, CreateTimeout: time.Minute, Close: func(string, int) error {
				closes.Add(1)
				end()
				return nil
			}})
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Set("k", 1)
			}()
			<-done
			began := time.Now()
			var refreshers []*call
			for range 2 {
				refreshers = append(refreshers, startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(slowly(2, nil))) }))
			}
			for _, x := range refreshers {
				if r := x.wait(t); r.value != 2 || r.err != nil || time.Since(began) != time.Second {
					t.Errorf("%s: %+v after %v", name, r, time.Since(began))
				}
			}
			synctest.Wait()
			if n := closes.Load(); n != 1 {
				t.Errorf("%s: %d closed", name, n)
			}
			go c.Close(t.Context())
			time.Sleep(3 * time.Hour)
			if n := closes.Load(); n != 2 || oncecache.Pending(c) != 0 {
				t.Errorf("%s: %d closed, %d pending", name, n, oncecache.Pending(c))
			}
		})
	}
}

// Who has seen the new value, and refreshes, gets one that is newer: a renewal
// whose function has returned is not joined.
func TestRefreshAfterRefresh(t *testing.T) {
	const refreshers = 4
	for range stressRounds() / 20 {
		var c oncecache.Cache[string, int]
		var made atomic.Int32
		create := func(context.Context, string) (int, error) { return int(made.Add(1)), nil }
		c.Set("k", 0)
		together(refreshers, func(int) {
			for range 20 {
				seen, _ := c.Get("k")
				if v, err := c.Refresh(context.Background(), "k", anew(create)); err != nil || v <= seen {
					t.Errorf("%d after %d, %v", v, seen, err)
				}
			}
		})
	}
}

// Once it is closed, Refresh returns no value that is not its own.
func TestStressRefreshMeetsClose(t *testing.T) {
	for range stressRounds() / 10 {
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { return nil }})
		c.Set("k", 1)
		together(2, func(i int) {
			if i == 0 {
				c.Close(t.Context())
				return
			}
			if v, err := c.Refresh(t.Context(), "k", anew(makes(2))); err == nil && v != 2 || err != nil && err != oncecache.ErrClosed {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
}

// Close calls off the function of a Refresh that Delete has overtaken.
func TestCloseFindsHiddenRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		c.Set("k", 1)
		p := newPilot()
		refreshed := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
		flight := <-p.ctx
		synctest.Wait()
		c.Delete("k")
		if err := c.Close(ended(t)); err == nil || context.Cause(flight) != oncecache.ErrClosed {
			t.Errorf("Close returns %v; the function is called off with %v", err, context.Cause(flight))
		}
		p.end <- with(2)
		wantAll(t, []*call{refreshed}, result{value: 2}) // as after Delete
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
		}
	})
}
