//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
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

// A Refresh whose context has ended calls nothing.
func TestRefreshAfterTheEnd(t *testing.T) {
	var c oncecache.Cache[string, int]
	c.Set("k", 1)
	ctx, end := context.WithCancel(t.Context())
	end()
	if v, err := c.Refresh(ctx, "k", anew(notAsked)); v != 0 || err != context.Canceled {
		t.Error(v, err)
	}
	wantGet(t, &c, "k", 1)
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

// Who deletes a value whose Refresh is about to end ends that before the old value is closed, which
// may end the goroutine: what the Refresh has made is closed as well.
func TestRefreshIsForgottenThoughCloseExits(t *testing.T) {
	for name, remove := range map[string]func(c *oncecache.Cache[string, int]){
		"Delete":           func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"CompareAndDelete": func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) },
	} {
		var c *oncecache.Cache[string, int]
		var closed [3]atomic.Int32
		c = oncecache.MustNew(oncecache.Config[string, int]{
			Close: func(_ string, v int) error {
				if closed[v].Add(1); v == 1 {
					runtime.Goexit()
				}
				return nil
			},
			TTLFunc: func(_ string, v int) time.Duration {
				if v == 2 { // the function has returned, and the old value is no longer leased
					done := make(chan struct{})
					go func() {
						defer close(done)
						remove(c)
					}()
					<-done
				}
				return time.Hour
			},
		})
		c.Set("k", 1)
		if v, err := c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return 2, nil })); v != 2 || err != nil {
			t.Errorf("%s: Refresh returns %d, %v", name, v, err)
		}
		if old, made, n := closed[1].Load(), closed[2].Load(), oncecache.Pending(c); old != 1 || made != 1 || n != 0 {
			t.Errorf("%s: the old value is closed %d times, the new one %d times, %d are pending", name, old, made, n)
		}
	}
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

// A Refresh that begins when another has ended calls its own function, however that ended, and
// though not all who wait for it have left: it takes nothing that was made before it began.
func TestRefreshTakesNothingThatWasMadeBefore(t *testing.T) {
	for name, end := range map[string]func() (int, error){
		"a new value":  with(2),
		"the same":     with(1),
		"not modified": func() (int, error) { return 0, oncecache.ErrNotModified },
		"an error":     failing,
		"a panic":      diskFull,
		"Goexit":       exiting,
	} {
		for _, closes := range []bool{false, true} {
			for _, lasts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, closes %t, lasts %t", name, closes, lasts), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						settings := config{}
						if closes {
							settings.Close = func(string, int) error { return nil }
						}
						if lasts {
							settings.TTLFunc = func(string, int) time.Duration { return time.Hour }
						}
						c := oncecache.MustNew(settings)
						c.Set("k", 1)
						for v := 10; v < 13; v++ {
							p := newPilot()
							earlier := []*call{startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })}
							<-p.ctx
							for range 3 {
								earlier = append(earlier, startCall(func() (int, error) {
									return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return unexpected(t)() }))
								}))
							}
							synctest.Wait()
							p.end <- end
							<-earlier[0].done // the others may be about to return
							if got, err := c.Refresh(t.Context(), "k", anew(makes(v))); got != v || err != nil {
								t.Errorf("%d, %v, want %d", got, err, v)
							}
							for _, x := range earlier {
								<-x.done
							}
							wantGet(t, c, "k", v)
							c.Set("k", 1)
						}
						c.Close(t.Context())
					})
				})
			}
		}
	}
}

// So does one that begins in what follows a Refresh: the Close function of the value that it has
// replaced, and those that are told of it.
func TestRefreshInWhatFollowsARefresh(t *testing.T) {
	for _, in := range []string{"Close", "OnRemove", "OnCreate"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *oncecache.Cache[string, int]
				var began atomic.Int32
				follow := func(of string) {
					if of == in && began.Add(1) == 1 {
						if v, err := c.Refresh(t.Context(), "k", anew(makes(3))); v != 3 || err != nil {
							t.Errorf("%d, %v, want 3", v, err)
						}
					}
				}
				c = oncecache.MustNew(config{
					Close:    func(string, int) error { follow("Close"); return nil },
					OnRemove: func(string, int, oncecache.Reason, error) { follow("OnRemove") },
					OnCreate: func(string, time.Duration, error) { follow("OnCreate") },
				})
				c.Set("k", 1)
				if v, err := c.Refresh(t.Context(), "k", anew(makes(2))); v != 2 || err != nil {
					t.Errorf("%d, %v, want 2", v, err)
				}
				synctest.Wait()
				wantGet(t, c, "k", 3)
				if err := c.Close(t.Context()); err != nil || began.Load() == 0 || c.Stats().Closed != 3 {
					t.Errorf("%v, %d, %d closed", err, began.Load(), c.Stats().Closed)
				}
			})
		})
	}
}

// What may become of a value while it is refreshed, without anyone having asked
// that its key be forgotten.
var goes = map[string]struct {
	config
	remove func(t *testing.T, c *oncecache.Cache[string, int])
}{
	"TTL": {config{TTLFunc: func(_ string, v int) time.Duration {
		if v == 1 {
			return time.Minute
		}
		return time.Hour
	}}, func(*testing.T, *oncecache.Cache[string, int]) { time.Sleep(2 * time.Minute) }},
}

// Who asks for a key whose value has gone while it is refreshed waits for what
// that makes, and is no second creation.
func TestCreationsWaitForARefresh(t *testing.T) {
	for name, tt := range goes {
		for _, w := range ways {
			for _, end := range []struct {
				how  func() (int, error)
				want result
			}{{with(2), result{value: 2}}, {failing, result{err: errRefused}}} {
				synctest.Test(t, func(t *testing.T) {
					tt.Close = func(string, int) error { return nil }
					c := oncecache.MustNew(tt.config)
					c.Set("k", 1)
					p := newPilot()
					refresh := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
					<-p.ctx
					tt.remove(t, c)
					if _, ok := c.Get("k"); ok {
						t.Fatalf("%s: the key has a value", name)
					}
					var all []*call
					for range 3 {
						all = append(all, startCall(func() (int, error) {
							return w.ask(t.Context(), c, "k", func(context.Context, string) (int, error) {
								t.Errorf("%s, %s: called", name, w.name)
								return 3, nil
							})
						}))
						synctest.Wait()
					}
					p.end <- end.how
					wantAll(t, append(all, refresh), end.want)
					synctest.Wait()
					if v, ok := c.Get("k"); ok != (end.want.err == nil) || v != end.want.value {
						t.Errorf("%s, %s: the key has %d, %t", name, w.name, v, ok)
					}
					if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
						t.Error(err, oncecache.Pending(c))
					}
				})
			}
		}
	}
}

// Who waits for a Refresh leaves when its context ends, and its function is never
// called.
func TestCreationsThatLeaveARefresh(t *testing.T) {
	for _, w := range ways {
		if !w.leaves {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(goes["TTL"].config)
			c.Set("k", 1)
			p := newPilot()
			refresh := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
			<-p.ctx
			goes["TTL"].remove(t, c)
			if n := c.Len(); n != 0 {
				t.Errorf("%d values, and there is none", n)
			}
			ctx, leave := context.WithCancel(t.Context())
			x := startCall(func() (int, error) { return w.ask(ctx, c, "k", notAsked) })
			synctest.Wait()
			leave()
			wantAll(t, []*call{x}, left)
			p.end <- with(2)
			wantAll(t, []*call{refresh}, result{value: 2})
			synctest.Wait()
			wantEven(t, c)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Delete, Clear and Set forget a Refresh as they forget a creation: nobody waits
// for it.
func TestNobodyWaitsForAForgottenRefresh(t *testing.T) {
	for name, remove := range map[string]func(*oncecache.Cache[string, int]){
		"Delete":           func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"Clear":            func(c *oncecache.Cache[string, int]) { c.Clear() },
		"CompareAndDelete": func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) },
		"Discard": func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(context.Background(), "k", notAsked)
			l.Discard()
		},
		"Set": func(c *oncecache.Cache[string, int]) { c.Set("k", 5); oncecache.CompareAndDelete(c, "k", 5) },
	} {
		got := 2
		if name == "Set" {
			got = 5
		}
		for _, w := range ways {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[string, int]
				c.Set("k", 1)
				p := newPilot()
				refresh := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
				<-p.ctx
				remove(&c)
				x := startCall(func() (int, error) { return w.ask(t.Context(), &c, "k", makes(3)) })
				wantAll(t, []*call{x}, result{value: 3})
				p.end <- with(2)
				wantAll(t, []*call{refresh}, result{value: got})
				if v, ok := c.Get("k"); v != 3 || !ok {
					t.Errorf("%s, %s: the key has %d", name, w.name, v)
				}
				wantEven(t, &c)
			})
		}
	}
}

// Who refreshes a key after Set, Delete or Clear joins no Refresh that began
// before, and gets what its own function makes.
func TestRefreshAfterSetBeginsAnew(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*oncecache.Cache[string, int])
	}{
		"Set":           {func(c *oncecache.Cache[string, int]) { c.Set("k", 5) }},
		"Delete":        {func(c *oncecache.Cache[string, int]) { c.Delete("k") }},
		"Delete, Set":   {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.Set("k", 5) }},
		"Clear":         {func(c *oncecache.Cache[string, int]) { c.Clear() }},
		"another value": {func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1); c.SetIfAbsent("k", 5) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			closed := map[int]int{}
			c := oncecache.MustNew(config{Close: func(_ string, v int) error {
				mu.Lock()
				defer mu.Unlock()
				closed[v]++
				return nil
			}})
			c.Set("k", 1)
			p := newPilot()
			older := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })
			<-p.ctx
			tt.change(c)
			newer := startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(makes(3))) })
			synctest.Wait()
			select {
			case <-newer.done:
			default:
				t.Fatalf("%s: the newer Refresh waits for the older one", name)
			}
			wantAll(t, []*call{newer}, result{value: 3})
			p.end <- with(2)
			got := 2
			if name == "Set" {
				got = 5
			}
			wantAll(t, []*call{older}, result{value: got})
			synctest.Wait()
			wantGet(t, c, "k", 3)
			if err := c.Close(t.Context()); err != nil || closed[1] != 1 || closed[2] != 1 || closed[3] != 1 {
				t.Errorf("%s: %v, closed %v", name, err, closed)
			}
		})
	}
}

// An heir gets no ErrCreateTimeout of a creation that others have left; who has
// stayed does.
func TestHeirsDoNotTimeOutForOthers(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(config{CreateTimeout: time.Minute, Close: func(string, int) error { return nil }})
			hang := func(context.Context, string) (int, error) { time.Sleep(time.Hour); return 1, nil }
			ctx, leave := context.WithCancel(t.Context())
			began := time.Now()
			gone := ask(ctx, c, hang)
			time.Sleep(30 * time.Second)
			leave()
			wantAll(t, []*call{gone}, left)
			heir := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", makes(3)) })
			waits := startCall(func() (int, error) { return c.Wait(t.Context(), "k") })
			wantAll(t, []*call{heir}, result{value: 3})
			if d := time.Since(began); d != time.Minute {
				t.Errorf("%s: the heir has its value after %v", w.name, d)
			}
			if r := waits.wait(t); r.err != oncecache.ErrNotFound && (r.value != 3 || r.err != nil) {
				t.Errorf("%s: Wait returns %+v", w.name, r)
			}

			c.Delete("k")
			first := ask(t.Context(), c, hang)
			synctest.Wait()
			stays := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", notAsked) })
			wantAll(t, []*call{first, stays}, result{err: oncecache.ErrCreateTimeout})
			time.Sleep(2 * time.Hour)
			if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
				t.Error(err, oncecache.Pending(c))
			}
		})
	}
}

// The function of a Reload holds the old value, which goes meanwhile. That is
// closed when the function has returned, and those who wait for what it has made
// do not wait for that, however the Close function ends.
func TestReloadWaitsForNoClose(t *testing.T) {
	for name, end := range map[string]func(){"hangs": func() { time.Sleep(time.Hour) }, "exits": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			s := newShop()
			s.fail = func(v int) error {
				if v == 1 {
					end()
				}
				return nil
			}
			s.Set("k", 1)
			gate := make(chan struct{})
			reload := func() (int, error) {
				return s.Refresh(t.Context(), "k", func(_ context.Context, _ string, old int, exists bool) (int, error) {
					<-gate
					if old != 1 || !exists {
						t.Errorf("%s: %d, %t", name, old, exists)
					}
					s.wantClosed(t)
					return 2, nil
				})
			}
			calls := []*call{startCall(reload), startCall(reload)}
			synctest.Wait()
			s.Set("k", 3)
			s.wantClosed(t)
			began := time.Now()
			close(gate)
			for _, x := range calls {
				if r := x.wait(t); r.err != nil || r.value != 3 || time.Since(began) != 0 {
					t.Errorf("%s: %+v after %v", name, r, time.Since(began))
				}
			}
			time.Sleep(2 * time.Hour)
			if err := s.Close(t.Context()); name == "hangs" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if oncecache.Pending(s.Cache) != 0 {
				t.Errorf("%s: something is left", name)
			}
		})
	}
}

// To refresh a value is not to use it, whichever way.
func TestRefreshIsNoUse(t *testing.T) {
	for name, refresh := range map[string]func(*oncecache.Cache[string, int]){
		"Refresh": func(c *oncecache.Cache[string, int]) { c.Refresh(context.Background(), "k", anew(makes(1))) },
		"Reload": func(c *oncecache.Cache[string, int]) {
			c.Refresh(context.Background(), "k", func(context.Context, string, int, bool) (int, error) { return 1, nil })
		},
	} {
		for closes, close := range map[string]func(string, int) error{"kept": nil, "closed": func(string, int) error { return nil }} {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: time.Minute, Close: close})
				defer c.Close(t.Context())
				c.Set("k", 1)
				for range 10 {
					time.Sleep(14 * time.Second) // never when a sweep comes, after which a Refresh creates
					if c.Len() == 0 {
						return
					}
					refresh(c)
				}
				t.Errorf("%s keeps an idle value that is %s", name, closes)
			})
		}
	}
}

// renewing returns settings whose values live a minute, and are renewed in its last 20 seconds.
func renewing(renew func(ctx context.Context, k string, old int) (int, error)) config {
	return config{
		TTLFunc: func(string, int) time.Duration { return time.Minute },
		Renew:   renew, RenewAhead: 20 * time.Second,
	}
}

// Calls that come during the last RenewAhead of the TTL get the old value at once, and one
// Renew runs; from its end on they get the new one, which has a TTL of its own.
func TestRenew(t *testing.T) {
	for name, find := range lookUps {
		switch name {
		case "SetIfAbsent", "Keys", "All", "Delete", "Set", "CompareAndDelete", "Clear", "Refresh", "Reload", "Peek", "Info":
			continue // they do not use the value
		}
		for _, closes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var running, calls, closed atomic.Int32
				settings := renewing(func(_ context.Context, k string, old int) (int, error) {
					if k != "k" || running.Add(1) != 1 {
						t.Errorf("two renew, or it is the wrong key: %q", k)
					}
					defer running.Add(-1)
					calls.Add(1)
					time.Sleep(5 * time.Second)
					return old + 1, nil
				})
				if closes {
					settings.Close = func(string, int) error { closed.Add(1); return nil }
				}
				c := oncecache.MustNew(settings)
				c.Set("k", 1)
				began := time.Now()
				for at := range 600 { // for ten minutes, every second
					v, ok := find(c, "k")
					synctest.Wait()
					if want := 1 + at/45; !ok || v != want {
						// a value is due after 40 seconds, and replaced 5 seconds later
						t.Fatalf("%s after %v: %d, %t, want %d", name, time.Since(began), v, ok, want)
					}
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if n := calls.Load(); n != 13 || c.Stats().Expired != 0 || closes && closed.Load() != 13 {
					t.Errorf("%s: %d calls of Renew, %d expired, %d closed", name, n, c.Stats().Expired, closed.Load())
				}
				c.Close(t.Context())
				wantEven(t, c)
			})
		}
	}
}

// A value that nobody uses is not renewed, and looking at it is no use.
func TestUnusedValueIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(renewing(func(context.Context, string, int) (int, error) {
			t.Error("Renew is called")
			return 0, nil
		}))
		c.Set("k", 1)
		time.Sleep(40*time.Second - time.Millisecond)
		wantGet(t, c, "k", 1)
		time.Sleep(10 * time.Second)
		for range c.All() {
		}
		c.SetIfAbsent("k", 2)
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		wantAbsent(t, c, "k")
	})
}

// Many calls that come at once start one Renew.
func TestOneRenewForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := oncecache.MustNew(renewing(func(ctx context.Context, _ string, old int) (int, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return 2, nil
		}))
		c.Set("k", 1)
		time.Sleep(45 * time.Second)
		for range 100 {
			go wantGet(t, c, "k", 1)
		}
		synctest.Wait()
		for range 10 { // who asks for a new value gets that of Renew
			go func() {
				if v, err := c.Refresh(t.Context(), "k", anew(makes(3))); v != 2 || err != nil {
					t.Errorf("Refresh returns %d, %v", v, err)
				}
			}()
		}
		time.Sleep(500 * time.Millisecond)
		flights := 0
		for f := range c.InFlight() {
			if flights++; f.Key != "k" {
				t.Errorf("in flight: %+v", f)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if calls.Load() != 1 || flights != 1 {
			t.Errorf("%d calls of Renew, %d flights", calls.Load(), flights)
		}
		wantGet(t, c, "k", 2)
	})
}

// A Renew that fails, however it does, leaves the old value until its time is over, and is
// not called all the time.
func TestRenewFails(t *testing.T) {
	for name, fail := range map[string]func() (int, error){
		"an error": failing, "a panic": panicking("disk full"), "Goexit": exiting,
		"it takes too long": func() (int, error) { time.Sleep(10 * time.Second); return 5, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			settings := renewing(func(context.Context, string, int) (int, error) { calls++; return fail() })
			settings.CreateTimeout = time.Second
			var closed atomic.Int32
			settings.Close = func(_ string, v int) error { closed.Add(1); return nil }
			c := oncecache.MustNew(settings)
			c.Set("k", 1)
			for range 6000 {
				wantGet(t, c, "k", 1)
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
			wantAbsent(t, c, "k")
			if want := 8; calls > want || calls < 2 {
				t.Errorf("%s: %d calls, want %d at most", name, calls, want)
			}
			if v, err := c.GetOrCreate("k", with(9)); v != 9 || err != nil {
				t.Errorf("%s: %d, %v", name, v, err)
			}
			time.Sleep(10 * time.Second)
			s := c.Stats()
			if failed := s.Failed + s.Panicked + s.TimedOut; failed != uint64(calls) {
				t.Errorf("%s: %+v after %d calls", name, s, calls)
			}
			err := c.Close(t.Context())
			if text := fmt.Sprint(err); strings.Contains(text, "disk full") != (name == "a panic") {
				t.Errorf("%s: Close returns %v", name, err)
			}
			wantEven(t, c)
		})
	}
}

// A Renew that succeeds after it has failed renews.
func TestRenewRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := oncecache.MustNew(renewing(func(context.Context, string, int) (int, error) {
			if calls++; calls < 3 {
				return failing()
			}
			return 2, nil
		}))
		c.Set("k", 1)
		began := time.Now()
		for {
			v, ok := c.Get("k")
			if !ok {
				t.Fatal("it has gone")
			}
			if v == 2 {
				break
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		if d := time.Since(began); d != 45*time.Second+10*time.Millisecond || calls != 3 {
			t.Errorf("renewed after %v, by call %d", d, calls)
		}
	})
}

// What comes while Renew runs is newer, and stays; what Renew makes is closed.
func TestRenewIsOvertaken(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(c *oncecache.Cache[string, int])
		want      int // zero: nothing
	}{
		"Set":              {func(c *oncecache.Cache[string, int]) { c.Set("k", 7) }, 7},
		"Delete":           {func(c *oncecache.Cache[string, int]) { c.Delete("k") }, 0},
		"Clear":            {func(c *oncecache.Cache[string, int]) { c.Clear() }, 0},
		"CompareAndDelete": {func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) }, 0},
		"Delete, then GetOrCreate": {func(c *oncecache.Cache[string, int]) {
			c.Delete("k")
			c.GetOrCreate("k", with(8))
		}, 8},
		"expiry": {func(*oncecache.Cache[string, int]) { time.Sleep(30 * time.Second) }, 2}, // a late success
		"expiry and a call, which waits for Renew": {func(c *oncecache.Cache[string, int]) {
			time.Sleep(16 * time.Second)
			go c.GetOrCreate("k", failing)
		}, 2},
		"Close": {func(c *oncecache.Cache[string, int]) { go c.Close(context.Background()) }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			closed := map[int]int{}
			var cause error
			made := 1
			settings := renewing(func(ctx context.Context, _ string, _ int) (int, error) {
				time.Sleep(50 * time.Second)
				cause = context.Cause(ctx)
				made++
				return made, nil
			})
			settings.Close = func(_ string, v int) error {
				mu.Lock()
				defer mu.Unlock()
				closed[v]++
				return nil
			}
			c := oncecache.MustNew(settings)
			c.Set("k", 1)
			time.Sleep(45 * time.Second)
			wantGet(t, c, "k", 1)
			synctest.Wait()
			tt.meanwhile(c)
			time.Sleep(55*time.Second - 1)
			if v, ok := c.Get("k"); v != tt.want && tt.want != 7 && tt.want != 8 || ok != (tt.want != 0) {
				t.Errorf("%s: %d, %t", name, v, ok)
			}
			synctest.Wait()
			if name == "Close" && !errors.Is(cause, oncecache.ErrClosed) {
				t.Errorf("the context of Renew has ended with %v", cause)
			}
			time.Sleep(time.Hour)
			c.Close(t.Context())
			for v, n := range closed {
				if n != 1 {
					t.Errorf("%s: %d is closed %d times", name, v, n)
				}
			}
			if closed[2] == 0 || closed[1] == 0 {
				t.Errorf("%s: closed %v", name, closed)
			}
			wantEven(t, c)
		})
	}
}

// Renew may find that nothing has changed: the value stays, as if it was new.
func TestRenewFindsNothingModified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, closed := 0, 0
		settings := renewing(func(_ context.Context, _ string, old int) (int, error) {
			calls++
			return 0, oncecache.ErrNotModified
		})
		settings.Close = func(string, int) error { closed++; return nil }
		c := oncecache.MustNew(settings)
		c.Set("k", 1)
		for range 400 {
			wantGet(t, c, "k", 1)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if calls != 9 || closed != 0 {
			t.Errorf("%d calls, closed %d times", calls, closed)
		}
		c.Close(t.Context())
	})
}

// The old value is held while Renew runs, and is closed after that.
func TestRenewHoldsTheOldValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		settings := renewing(func(_ context.Context, _ string, old int) (int, error) {
			time.Sleep(time.Minute) // it expires meanwhile
			if closed.Load() != 0 {
				t.Error("the old value is closed")
			}
			return 2, nil
		})
		settings.Close = func(_ string, v int) error { closed.Add(1); return nil }
		c := oncecache.MustNew(settings)
		c.Set("k", 1)
		time.Sleep(50 * time.Second)
		wantGet(t, c, "k", 1)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if closed.Load() != 2 {
			t.Errorf("closed %d times", closed.Load())
		}
		c.Close(t.Context())
		wantEven(t, c)
	})
}

// Close waits for Renew, and Renew may use the cache.
func TestRenewUsesTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *oncecache.Cache[string, int]
		ended := false
		c = oncecache.MustNew(renewing(func(ctx context.Context, k string, old int) (int, error) {
			v, err := c.GetOrCreateContext(ctx, k, refusing) // which it has
			if v != old || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			c.Set("other", 1)
			<-ctx.Done() // until the cache is closed
			time.Sleep(time.Second)
			ended = true
			return 2, nil
		}))
		c.Set("k", 1)
		time.Sleep(50 * time.Second)
		wantGet(t, c, "k", 1)
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil || !ended {
			t.Errorf("Close returns %v; Renew has ended: %t", err, ended)
		}
	})
}

// A renewal that asks for its own key when the old value has gone would wait for itself.
func TestRenewAsksForItsKey(t *testing.T) {
	knowsGoroutines(t)
	synctest.Test(t, func(t *testing.T) {
		var c *oncecache.Cache[string, int]
		var got error
		settings := renewing(func(_ context.Context, k string, _ int) (int, error) {
			time.Sleep(time.Hour) // until the old value has gone
			_, got = c.GetOrCreate(k, with(3))
			return 0, got
		})
		c = oncecache.MustNew(settings)
		c.Set("k", 1)
		time.Sleep(50 * time.Second)
		wantGet(t, c, "k", 1)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if !isCycle(got) {
			t.Errorf("%v, want a CycleError", got)
		}
	})
}

// A TTL that is not longer than RenewAhead is renewed after half of it, and no sooner.
func TestShortTTLIsRenewedLate(t *testing.T) {
	for _, ttl := range []time.Duration{1, time.Millisecond, 10 * time.Millisecond, 10 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			settings := renewing(func(_ context.Context, _ string, old int) (int, error) { calls++; return old + 1, nil })
			settings.TTLFunc = func(string, int) time.Duration { return ttl }
			c := oncecache.MustNew(settings)
			c.Set("k", 1)
			const n = 1000
			for range n {
				c.GetOrCreate("k", with(0))
				time.Sleep(ttl / 10)
				synctest.Wait()
			}
			if most := n/5 + 1; calls > most || ttl >= 10*time.Millisecond && calls < n/10 {
				t.Errorf("%v: %d calls, want %d at most", ttl, calls, most)
			}
			c.Close(t.Context())
		})
	}
}

// Settings of Renew that make no sense are refused.
func TestNewRefusesRenew(t *testing.T) {
	ttl := func(string, int) time.Duration { return 1 }
	renew := func(context.Context, string, int) (int, error) { return 0, nil }
	for want, bad := range map[string]config{
		"oncecache: Config.RenewAhead -1ns: must not be negative":                            {TTLFunc: ttl, Renew: renew, RenewAhead: -1},
		"oncecache: Config.RenewAhead 1ns: must be 0 without Config.Renew and Config.Create": {TTLFunc: ttl, RenewAhead: 1},
		"oncecache: Config.RenewAhead 1ns: must be 0 without Config.TTL and Config.TTLFunc":  {Renew: renew, RenewAhead: 1},
		"oncecache: Config.RenewAhead 1ns: must be below Config.TTL, which is 1ns":           {TTL: 1, Renew: renew, RenewAhead: 1},
		"oncecache: Config.RenewAhead 1m0s: must be below Config.TTL, which is 1m0s":         {TTL: time.Minute, Renew: renew, RenewAhead: time.Minute},
		"oncecache: Config.TTL 1ns: must be 0 with Config.TTLFunc":                           {TTL: 1, TTLFunc: ttl},
		"oncecache: Config.TTL -1ns: must not be negative":                                   {TTL: -1},
		"oncecache: Config.ErrorTTL 1m0s: must be 0 with Config.ErrorTTLFunc":                {ErrorTTL: time.Minute, ErrorTTLFunc: func(string, error) time.Duration { return 0 }},
		"oncecache: Config.RenewAhead 0s: must be above 0 with Config.Renew":                 {TTLFunc: ttl, Renew: renew},
	} {
		if c, err := oncecache.New(bad); c != nil || err == nil || err.Error() != want {
			t.Errorf("New returns %v, %v, want %s", c, err, want)
		}
	}
}

// What is renewed while it is used by all, deleted and set is closed once.
func TestStressRenew(t *testing.T) {
	var made, closed atomic.Int64
	settings := oncecache.Config[int, *int64]{
		TTLFunc:   func(int, *int64) time.Duration { return 4 * time.Millisecond },
		TTLJitter: 0.5,
		Renew: func(_ context.Context, k int, _ *int64) (*int64, error) {
			if made.Add(1)%7 == 0 || k == 4 {
				made.Add(-1)
				return nil, errRefused
			}
			return new(int64), nil
		},
		RenewAhead: 2 * time.Millisecond,
		Close: func(_ int, v *int64) error {
			if atomic.AddInt64(v, 1) != 1 {
				t.Error("closed twice, or in use")
			}
			closed.Add(1)
			return nil
		},
	}
	c := oncecache.MustNew(settings)
	end := time.Now().Add(300 * time.Millisecond)
	together(stressWorkers, func(worker int) {
		goesOn := func() bool { // on a busy machine nothing may have expired by then
			late := time.Since(end)
			return late < 0 || c.Stats().Expired == 0 && late < time.Minute
		}
		for i := 0; goesOn(); i++ {
			k := i % 5
			switch i % 20011 { // seldom, so that values live long enough to expire
			case 0:
				c.Delete(k)
			case 1:
				made.Add(1)
				c.Set(k, new(int64))
			default:
				l, err := c.Acquire(context.Background(), k, func(context.Context, int) (*int64, error) {
					made.Add(1)
					return new(int64), nil
				})
				if err == errRefused {
					continue // the old value has expired, and its renewal is the creation
				}
				if err != nil {
					t.Error(err)
					return
				}
				if atomic.LoadInt64(l.Value()) != 0 {
					t.Error("closed while it is held")
				}
				runtime.Gosched()
				l.Release()
			}
		}
	})
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if made.Load() != closed.Load() || c.Stats().Expired == 0 {
		t.Errorf("%d were made, %d closed, %d expired", made.Load(), closed.Load(), c.Stats().Expired)
	}
}

// A Renew that fails after Set has made the very value as new does not make it due before its time.
func TestRenewFailsAfterSetOfTheVeryValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		settings := renewing(func(context.Context, string, int) (int, error) {
			calls.Add(1)
			time.Sleep(10 * time.Second)
			return 0, errRefused
		})
		settings.Close = func(string, int) error { return nil }
		c := oncecache.MustNew(settings)
		c.Set("k", 1) // due after 40 seconds
		time.Sleep(41 * time.Second)
		wantGet(t, c, "k", 1)
		time.Sleep(time.Second)
		c.Set("k", 1) // due 40 seconds later
		for range 39 {
			time.Sleep(time.Second)
			wantGet(t, c, "k", 1)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls of Renew before the value is due again", n)
		}
		time.Sleep(2 * time.Second)
		wantGet(t, c, "k", 1)
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls of Renew, want 2", n)
		}
		c.Close(t.Context())
	})
}

// A value that is due for renewal, which no call has used since, is due no more when it comes
// again: the next use begins no renewal before the new lifetime says so.
func TestTheVeryValueIsDueNoMore(t *testing.T) {
	for name, again := range setAgain {
		for use, find := range lookUps {
			switch use {
			case "SetIfAbsent", "Keys", "All", "Delete", "Set", "CompareAndDelete", "Clear", "Reload", "Refresh", "Peek", "Info":
				continue // they do not use the value
			}
			for _, closes := range []bool{false, true} {
				if !closes && name == "Set" {
					continue // then any value is another one
				}
				for _, then := range []time.Duration{time.Minute, time.Hour, forGood} {
					t.Run(fmt.Sprintf("%s, %s, closes %t, then %v", name, use, closes, then), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							calls := 0
							settings := renewing(func(context.Context, string, int) (int, error) { calls++; return 2, nil })
							ttl := time.Minute
							settings.TTLFunc = func(string, int) time.Duration { return ttl }
							if closes {
								settings.Close = func(string, int) error { return nil }
							}
							c := oncecache.MustNew(settings)
							c.Set("k", 1)
							time.Sleep(41 * time.Second) // it is due
							synctest.Wait()
							ttl = then
							again(t.Context(), c)
							renewed, _ := lasts(then, 20*time.Second)
							if renewed == 0 {
								renewed = 24 * time.Hour
							}
							for _, d := range []time.Duration{0, time.Second, renewed - 2*time.Second} {
								time.Sleep(d)
								synctest.Wait()
								v, ok := find(c, "k")
								synctest.Wait()
								if v != 1 || !ok || calls != 0 {
									t.Fatalf("%d, %t, renewed %d times", v, ok, calls)
								}
							}
							time.Sleep(time.Second)
							synctest.Wait()
							find(c, "k")
							synctest.Wait()
							if want := map[bool]int{true: 0, false: 1}[then == forGood]; calls != want {
								t.Errorf("renewed %d times, want %d", calls, want)
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
}

// The end of a lease gets no value, so it begins no renewal.
func TestReleaseBeginsNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := oncecache.MustNew(renewing(func(context.Context, string, int) (int, error) { calls++; return 2, nil }))
		c.Set("k", 1)
		l, err := c.Acquire(t.Context(), "k", makes(3))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(41 * time.Second) // it is due
		synctest.Wait()
		l.Release()
		synctest.Wait()
		if calls != 0 {
			t.Errorf("renewed %d times by the end of a lease", calls)
		}
		wantGet(t, c, "k", 1)
		synctest.Wait()
		if wantGet(t, c, "k", 2); calls != 1 {
			t.Errorf("renewed %d times, want once", calls)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A value that comes due while a Refresh of it is under way, which then fails, comes due again.
func TestDueBesideARefreshThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := oncecache.MustNew(renewing(func(_ context.Context, _ string, old int) (int, error) { calls++; return old + 1, nil }))
		c.Set("k", 1)
		time.Sleep(39 * time.Second)
		go c.Refresh(t.Context(), "k", func(context.Context, string, int, bool) (int, error) {
			time.Sleep(5 * time.Second)
			return 0, errRefused
		})
		time.Sleep(3 * time.Second) // it is due, and being refreshed
		wantGet(t, c, "k", 1)
		time.Sleep(10 * time.Second)
		wantGet(t, c, "k", 1)
		synctest.Wait()
		if wantGet(t, c, "k", 2); calls != 1 || c.Stats().Renewals != 1 {
			t.Errorf("renewed %d times, counted %d", calls, c.Stats().Renewals)
		}
		c.Close(t.Context())
	})
}

// A renewal is counted when it begins. If it fails, the pause until the next begins when it ends.
func TestPauseAfterALongRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *oncecache.Cache[string, int]
		calls := uint64(0)
		c = oncecache.MustNew(renewing(func(context.Context, string, int) (int, error) {
			if calls++; c.Stats().Renewals != calls {
				t.Errorf("%d renewals are counted in call %d", c.Stats().Renewals, calls)
			}
			time.Sleep(5 * time.Second)
			return failing()
		}))
		c.Set("k", 1)
		time.Sleep(40 * time.Second)
		for _, tt := range []struct {
			after time.Duration
			calls uint64
		}{{0, 1}, {6 * time.Second, 1}, {2 * time.Second, 2}} { // it fails after five seconds, and the pause is 2.5
			time.Sleep(tt.after)
			synctest.Wait()
			wantGet(t, c, "k", 1)
			if synctest.Wait(); calls != tt.calls {
				t.Errorf("%d calls of Renew, want %d", calls, tt.calls)
			}
		}
		c.Close(t.Context())
	})
}

// Beside Renew, Create makes what is absent, with the context of the call.
func TestCreateBesideRenewHasTheContext(t *testing.T) {
	settings := renewing(func(context.Context, string, int) (int, error) { return failing() })
	settings.Create = func(ctx context.Context, _ string) (int, error) { return ctx.Value(t).(int), nil }
	c := oncecache.MustNew(settings)
	if v, err := c.Refresh(context.WithValue(t.Context(), t, 7), "k", nil); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	c.Close(t.Context())
}

// made is a value that knows when it was made.
type made struct{ at time.Time }

// source counts its calls, and may be down.
type source struct {
	calls int
	down  bool
}

func (s *source) ask(context.Context, string, *made) (*made, error) {
	if s.calls++; s.down {
		return nil, errors.New("source down")
	}
	return &made{time.Now()}, nil
}

// A RenewAhead that is shorter than the TTL says when a value is due, however near to the TTL it is.
func TestRenewAheadCounts(t *testing.T) {
	for _, tt := range []struct{ ttl, ahead time.Duration }{
		{24 * time.Hour, 23*time.Hour + 55*time.Minute},
		{time.Hour, 59 * time.Minute},
		{time.Hour, 31 * time.Minute},
		{time.Hour, 30 * time.Minute},
		{time.Hour, time.Minute},
		{time.Minute, time.Minute - time.Millisecond},
		{10 * time.Millisecond, 9 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s source
			c := oncecache.MustNew(oncecache.Config[string, *made]{
				TTLFunc: func(string, *made) time.Duration { return tt.ttl }, RenewAhead: tt.ahead, Renew: s.ask,
			})
			c.Set("k", &made{time.Now()})
			for n := range 3 {
				before, _ := c.Get("k")
				time.Sleep(tt.ttl - tt.ahead - 1)
				if v, ok := c.Get("k"); v != before || !ok || s.calls != n {
					t.Fatalf("TTL %v, RenewAhead %v: renewed by call %d before it is due", tt.ttl, tt.ahead, s.calls)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if v, ok := c.Get("k"); v != before || !ok {
					t.Fatalf("TTL %v, RenewAhead %v: the call that finds it due gets %v, %t", tt.ttl, tt.ahead, v, ok)
				}
				synctest.Wait()
				if v, ok := c.Get("k"); !v.at.Equal(time.Now()) || !ok || s.calls != n+1 {
					t.Fatalf("TTL %v, RenewAhead %v: %v old, after %d calls", tt.ttl, tt.ahead, time.Since(v.at), s.calls)
				}
			}
			c.Close(t.Context())
		})
	}
}

// Fresh for five minutes, and served for a day while the source is down. It is asked
// again soon: the first call after the source is back need not wait for hours.
func TestRenewAheadOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const fresh, stale = 5 * time.Minute, 24 * time.Hour
		var s source
		c := oncecache.MustNew(oncecache.Config[string, *made]{
			TTLFunc: func(string, *made) time.Duration { return stale }, RenewAhead: stale - fresh, Renew: s.ask,
		})
		begun := time.Now()
		c.Set("k", &made{begun})
		var oldest time.Duration
		look := func(minutes int) (age time.Duration) {
			for range minutes {
				time.Sleep(time.Minute)
				synctest.Wait()
				v, ok := c.Get("k")
				synctest.Wait()
				if !ok {
					t.Fatalf("absent %v after the beginning", time.Since(begun))
				}
				age = time.Since(v.at)
				oldest = max(oldest, age)
			}
			return age
		}
		look(10 * 60)
		if oldest > fresh+time.Minute || s.calls > 10*60/5 || s.calls < 10*60/6-1 {
			t.Errorf("up to %v old while the source is up, asked %d times", oldest, s.calls)
		}
		s.down, s.calls = true, 0
		look(20 * 60)
		if s.calls > 20*60 || s.calls < 20*60/5 {
			t.Errorf("the source is down for 20 hours, and asked %d times", s.calls)
		}
		s.down = false
		if age := look(5); age > fresh+time.Minute {
			t.Errorf("%v old, 5 minutes after the source is back", age)
		}
		c.Close(t.Context())
	})
}

// A renewal is a caller only while the old value is good. After that it lives as a creation does: it is
// cancelled when all callers have left, and the next caller creates anew.

// hung is a cache of values that live an hour, one of which is being renewed, by a function that
// returns when its context ends.
type hung struct {
	*oncecache.Cache[string, int]
	began time.Time     // when k was set
	ended chan struct{} // is closed when Renew's context has ended
	at    time.Duration // when that was, since began
}

func newHung(settings oncecache.Config[string, int]) *hung {
	h := &hung{ended: make(chan struct{}), began: time.Now()}
	settings.TTLFunc = func(string, int) time.Duration { return time.Hour }
	settings.RenewAhead = 20 * time.Minute
	settings.Renew = func(ctx context.Context, _ string, _ int) (int, error) {
		<-ctx.Done()
		h.at = time.Since(h.began)
		close(h.ended)
		return 0, ctx.Err()
	}
	h.Cache = oncecache.MustNew(settings)
	h.Set("k", 1)
	time.Sleep(45 * time.Minute)
	h.Get("k")
	synctest.Wait()
	return h
}

// wantRunning reports it if Renew's context has ended.
func (h *hung) wantRunning(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case <-h.ended:
		t.Errorf("the context of Renew ended after %v", h.at)
	default:
	}
}

// wantEnded reports it unless Renew's context ended so long after Set.
func (h *hung) wantEnded(t *testing.T, want time.Duration) {
	t.Helper()
	synctest.Wait()
	select {
	case <-h.ended:
		if late := h.at - want; late < 0 || late > time.Second {
			t.Errorf("the context of Renew ended after %v, want %v", h.at, want)
		}
	default:
		t.Error("the context of Renew has not ended")
	}
}

// wantNext asks for the key with little patience, and wants the value that create makes.
func (h *hung) wantNext(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	v, err := h.GetOrCreateContext(ctx, "k", func(context.Context, string) (int, error) { return 2, nil })
	if v != 2 || err != nil {
		t.Errorf("the next caller gets %d, %v", v, err)
	}
}

// The settings with which a renewal may hang.
var hungSettings = map[string]oncecache.Config[string, int]{
	"plain":             {},
	"Close":             {Close: func(string, int) error { return nil }},
	"CloseBeforeCreate": {Close: func(string, int) error { return nil }, CloseBeforeCreate: true},
	"MaxEntries":        {MaxEntries: 10},
}

func testHung(t *testing.T, f func(t *testing.T, h *hung)) {
	for name, settings := range hungSettings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHung(settings)
				f(t, h)
				if err := h.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Nobody asks for the key when its value expires.
func TestHungRenewalEndsWithTheValue(t *testing.T) {
	testHung(t, func(t *testing.T, h *hung) {
		time.Sleep(15*time.Minute - time.Second)
		h.wantRunning(t)
		if v, ok := h.Get("k"); v != 1 || !ok {
			t.Errorf("the key has %d, %t while it is renewed", v, ok)
		}
		time.Sleep(time.Hour)
		h.wantEnded(t, time.Hour)
		h.wantNext(t)
	})
}

// A call of Refresh shares the renewal, and keeps it beyond the end of the value.
func TestHungRenewalEndsWithItsCallers(t *testing.T) {
	testHung(t, func(t *testing.T, h *hung) {
		for _, patience := range []time.Duration{20 * time.Minute, 30 * time.Minute} {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if v, err := h.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 3, nil })); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Refresh returns %d, %v", v, err)
				}
			}()
		}
		time.Sleep(29 * time.Minute)
		h.wantRunning(t)
		time.Sleep(10 * time.Minute)
		h.wantEnded(t, 75*time.Minute)
		h.wantNext(t)
	})
}

// A caller that comes after the end of the value, while Refresh keeps the renewal, has it cancelled
// when it is the last to leave.
func TestHungRenewalEndsWithALaterCaller(t *testing.T) {
	testHung(t, func(t *testing.T, h *hung) {
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Minute)
		defer cancel()
		go h.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 3, nil }))
		time.Sleep(15*time.Minute + 30*time.Second)
		late, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		if v, err := h.GetOrCreateContext(late, "k", func(context.Context, string) (int, error) { return 4, nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller beside the renewal gets %d, %v", v, err)
		}
		h.wantEnded(t, 61*time.Minute+30*time.Second)
		h.wantNext(t)
	})
}

// The old value may leave otherwise.
func TestHungRenewalEndsWithARemovedValue(t *testing.T) {
	for name, remove := range map[string]func(c *oncecache.Cache[string, int]){
		"CompareAndDelete": func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 1) },
		"Discard": func(c *oncecache.Cache[string, int]) {
			l, err := c.Acquire(context.Background(), "k", absent1)
			if err == nil {
				l.Discard()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHung(hungSettings["MaxEntries"])
				remove(h.Cache)
				h.wantEnded(t, 45*time.Minute)
				h.wantNext(t)
				h.Close(t.Context())
			})
		})
	}
}

func absent1(context.Context, string) (int, error) { return 0, errors.New("absent") }
