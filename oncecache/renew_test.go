//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/oncecache"
)

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
	if goid.Token() == 0 {
		t.Skip("a goroutine is not known on " + runtime.GOARCH)
	}
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
		"oncecache: Config.RenewAhead -1ns: must not be negative":                             {TTLFunc: ttl, Renew: renew, RenewAhead: -1},
		"oncecache: Config.RenewAhead 1m0s: must be 0 without Config.Renew and Config.Create": {TTLFunc: ttl, RenewAhead: time.Minute},
		"oncecache: Config.RenewAhead 1s: must be 0 without Config.TTL and Config.TTLFunc":    {Renew: renew, RenewAhead: time.Second},
		"oncecache: Config.RenewAhead 1m0s: must be below Config.TTL, which is 1m0s":          {TTL: time.Minute, Renew: renew, RenewAhead: time.Minute},
		"oncecache: Config.TTL 1m0s: must be 0 with Config.TTLFunc":                           {TTL: time.Minute, TTLFunc: ttl},
		"oncecache: Config.TTL -1ns: must not be negative":                                    {TTL: -1},
		"oncecache: Config.ErrorTTL 1m0s: must be 0 with Config.ErrorTTLFunc":                 {ErrorTTL: time.Minute, ErrorTTLFunc: func(string, error) time.Duration { return 0 }},
		"oncecache: Config.RenewAhead 0s: must be above 0 with Config.Renew":                  {TTLFunc: ttl, Renew: renew},
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
