//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// lasting returns settings whose values expire after d.
func lasting(d time.Duration) config {
	return config{TTLFunc: func(string, int) time.Duration { return d }}
}

// tt is a way to ask for a value. It reports what it found; none of them creates.
var lookUps = map[string]func(c *oncecache.Cache[string, int], k string) (v int, ok bool){
	"Get": func(c *oncecache.Cache[string, int], k string) (int, bool) { return c.Get(k) },
	"GetOrCreate": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		v, err := c.GetOrCreate(k, failing)
		return v, err == nil
	},
	"GetOrCreateContext": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		v, err := c.GetOrCreateContext(context.Background(), k, refusing)
		return v, err == nil
	},
	"Peek": func(c *oncecache.Cache[string, int], k string) (int, bool) { return c.Peek(k) },
	"Info": func(c *oncecache.Cache[string, int], k string) (int, bool) { _, ok := c.Info(k); return 1, ok },
	"Acquire": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		l, err := c.Acquire(context.Background(), k, refusing)
		if err != nil {
			return 0, false
		}
		defer l.Release()
		return l.Value(), true
	},
	"GetOrCreateMany": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		got, _ := c.GetOrCreateMany(context.Background(), []string{k}, func(context.Context, []string) (map[string]int, error) {
			return nil, errRefused
		})
		v, ok := got[k]
		return v, ok
	},
	"Wait": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		v, err := c.Wait(context.Background(), k)
		return v, err == nil
	},
	"SetIfAbsent": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		return 1, !stored(c.SetIfAbsent(k, 1))
	},
	"Keys": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		return 1, slices.Contains(slices.Collect(c.Keys()), k)
	},
	"All": func(c *oncecache.Cache[string, int], k string) (v int, ok bool) {
		for key, value := range c.All() {
			if key == k {
				v, ok = value, true
			}
		}
		return v, ok
	},
	"Delete": func(c *oncecache.Cache[string, int], k string) (int, bool) { return c.Delete(k) },
	"Set":    func(c *oncecache.Cache[string, int], k string) (int, bool) { return c.Set(k, 2) },
	"CompareAndDelete": func(c *oncecache.Cache[string, int], k string) (int, bool) {
		return 1, oncecache.CompareAndDelete(c, k, 1)
	},
	"Clear": func(c *oncecache.Cache[string, int], _ string) (int, bool) { return 1, c.Clear() == 1 },
	"Reload": func(c *oncecache.Cache[string, int], k string) (v int, ok bool) {
		c.Refresh(context.Background(), k, func(_ context.Context, _ string, old int, exists bool) (int, error) {
			v, ok = old, exists
			return 0, errRefused
		})
		return v, ok
	},
}

func refusing(context.Context, string) (int, error) { return failing() }

// Until its time is over a value is returned by each method, and from then on by none;
// a value that has expired is closed once.
func TestExpiry(t *testing.T) {
	for name, find := range lookUps {
		for _, closes := range []bool{false, true} {
			for at, want := range map[time.Duration]bool{0: true, 9999 * time.Microsecond: true, 10 * time.Millisecond: false, time.Hour: false} {
				synctest.Test(t, func(t *testing.T) {
					settings := lasting(10 * time.Millisecond)
					var closed atomic.Int32
					if closes {
						settings.Close = func(_ string, v int) error {
							if v == 1 {
								closed.Add(1)
							}
							return nil
						}
					}
					c := oncecache.MustNew(settings)
					c.Set("k", 1)
					time.Sleep(at)
					synctest.Wait()
					if n := c.Len(); n != 0 != want {
						t.Errorf("%s after %v: Len is %d", name, at, n)
					}
					if got := c.Stats().Expired; (got == 1) == want {
						t.Errorf("%s after %v: %d have expired", name, at, got)
					}
					v, ok := find(c, "k")
					if ok != want || ok && v != 1 {
						t.Errorf("%s after %v: %d, %t", name, at, v, ok)
					}
					if err := c.Close(t.Context()); err != nil || closes && closed.Load() < 1 || closed.Load() > 1 && name != "SetIfAbsent" {
						t.Errorf("%s after %v: %v, closed %d times", name, at, err, closed.Load())
					}
				})
			}
		}
	}
}

// An expired value that is still in the table, because the call comes before the timer has
// removed it, is as absent as one that has left.
func TestExpiredInTheTable(t *testing.T) {
	for name, find := range lookUps {
		for _, closes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				settings := lasting(time.Hour)
				var closed atomic.Int32
				if closes {
					settings.Close = func(_ string, v int) error { closed.Add(1); return nil }
				}
				c := oncecache.MustNew(settings)
				c.Set("k", 1)
				finish := oncecache.StartExpiry(c, "k")
				if v, ok := find(c, "k"); ok {
					t.Errorf("%s: %d is returned", name, v)
				}
				finish()
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
				want := int32(1)
				if name == "Set" || name == "SetIfAbsent" {
					want = 2
				}
				if got := c.Stats().Expired; got != 1 || closes && closed.Load() != want {
					t.Errorf("%s: %d expired, %d closed", name, got, closed.Load())
				}
				wantEven(t, c)
			})
		}
	}
}

// A use does not prolong a value, and does not bring it back.
func TestUseDoesNotProlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := lasting(time.Minute)
		settings.IdleTimeout, settings.MaxEntries = time.Hour, 2
		c := oncecache.MustNew(settings)
		c.Set("k", 1)
		for range 59 {
			time.Sleep(time.Second)
			wantGet(t, c, "k", 1)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for range 3 {
			wantAbsent(t, c, "k")
		}
		wantLen(t, c, 0)
	})
}

// A value that takes the place of another has a time of its own, also if it is the very
// value, or was not modified.
func TestNewValueHasItsOwnTime(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, c *oncecache.Cache[string, int]){
		"Set":           func(_ context.Context, c *oncecache.Cache[string, int]) { c.Set("k", 2) },
		"Set, the same": func(_ context.Context, c *oncecache.Cache[string, int]) { c.Set("k", 1) },
		"Refresh":       func(ctx context.Context, c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(makes(2))) },
		"not modified": func(ctx context.Context, c *oncecache.Cache[string, int]) {
			c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 0, oncecache.ErrNotModified }))
		},
		"Refresh, the same": func(ctx context.Context, c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(makes(1))) },
		"Delete": func(ctx context.Context, c *oncecache.Cache[string, int]) {
			c.Delete("k")
			c.GetOrCreateContext(ctx, "k", makes(3))
		},
	} {
		for _, closes := range []bool{false, true} {
			for first, second := range map[time.Duration]time.Duration{time.Minute: time.Hour, time.Hour: time.Minute} {
				synctest.Test(t, func(t *testing.T) {
					asked := 0
					settings := config{TTLFunc: func(string, int) time.Duration {
						asked++
						if asked == 1 {
							return first
						}
						return second
					}}
					if closes {
						settings.Close = func(string, int) error { return nil }
					}
					c := oncecache.MustNew(settings)
					c.Set("k", 1)
					time.Sleep(30 * time.Second)
					write(t.Context(), c)
					if asked != 2 {
						t.Errorf("%s: TTL was called %d times", name, asked)
					}
					time.Sleep(second - time.Millisecond)
					synctest.Wait()
					if _, ok := c.Get("k"); !ok {
						t.Errorf("%s: gone before %v", name, second)
					}
					time.Sleep(time.Millisecond)
					synctest.Wait()
					if v, ok := c.Get("k"); ok {
						t.Errorf("%s: %d after %v", name, v, second)
					}
					if n, entries := oncecache.Creating(c); n != 0 || entries != 0 || oncecache.Places(c) != 0 || oncecache.Lifetimes(c) != 0 {
						t.Errorf("%s: %d creating, %d entries, %d places", name, n, entries, oncecache.Places(c))
					}
				})
			}
		}
	}
}

// tick is what deadlines are rounded up to.
const tick = time.Millisecond

// TTL may return anything.
func TestExtremeTTL(t *testing.T) {
	for _, tt := range []struct {
		ttl        time.Duration
		at1, later bool // whether it is there at once, and a year later
	}{
		{0, false, false}, {-1, false, false}, {math.MinInt64, false, false}, {1, true, false}, {time.Hour, true, false},
		{century, true, true}, {math.MaxInt64 - 1, true, true}, {math.MaxInt64, true, true},
		{math.MaxInt64 - century - time.Hour - tick/2, true, true}, // it ends when time does, but for rounding
	} {
		for _, jitter := range []float64{0, 1e-300, 0.5, 1} {
			for how, store := range map[string]func(c *oncecache.Cache[string, int]) int{
				"GetOrCreate": func(c *oncecache.Cache[string, int]) int { v, _ := c.GetOrCreate("k", with(1)); return v },
				"Acquire": func(c *oncecache.Cache[string, int]) int {
					l, err := c.Acquire(context.Background(), "k", makes(1))
					if err != nil {
						return 0
					}
					defer l.Release()
					return l.Value()
				},
				"GetOrCreateMany": func(c *oncecache.Cache[string, int]) int {
					got, _ := c.GetOrCreateMany(context.Background(), []string{"k"}, func(context.Context, []string) (map[string]int, error) {
						return map[string]int{"k": 1}, nil
					})
					return got["k"]
				},
				"Refresh": func(c *oncecache.Cache[string, int]) int {
					v, _ := c.Refresh(context.Background(), "k", anew(makes(1)))
					return v
				},
				"Set":         func(c *oncecache.Cache[string, int]) int { c.Set("k", 1); return 1 },
				"SetIfAbsent": func(c *oncecache.Cache[string, int]) int { c.SetIfAbsent("k", 1); return 1 },
			} {
				for _, closes := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						var closed atomic.Int32
						settings := config{TTLFunc: func(string, int) time.Duration { return tt.ttl }, TTLJitter: jitter}
						if closes {
							settings.Close = func(string, int) error { closed.Add(1); return nil }
						}
						c := oncecache.MustNew(settings)
						time.Sleep(time.Hour + time.Microsecond) // so that sums overflow, and are rounded
						if v := store(c); v != 1 {
							t.Errorf("%s of TTL %v: the caller gets %d", how, tt.ttl, v)
						}
						if _, ok := c.Get("k"); ok != tt.at1 {
							t.Errorf("%s of TTL %v, %g: there at once: %t", how, tt.ttl, jitter, ok)
						}
						oncecache.Sweep(c) // as for another value
						time.Sleep(365 * 24 * time.Hour)
						synctest.Wait()
						if _, ok := c.Get("k"); ok != tt.later && (jitter == 0 || jitter < 0.5) {
							t.Errorf("%s of TTL %v, %g: there a year later: %t", how, tt.ttl, jitter, ok)
						}
						if err := c.Close(t.Context()); err != nil || closes && closed.Load() != 1 {
							t.Errorf("%s of TTL %v, %g: %v, closed %d times", how, tt.ttl, jitter, err, closed.Load())
						}
						wantEven(t, c)
					})
				}
			}
		}
	}
}

// A Refresh that leaves the value with no time to live returns it, and it is closed once.
func TestNoTimeLeft(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, c *oncecache.Cache[string, int]) int{
		"Set, the same": func(_ context.Context, c *oncecache.Cache[string, int]) int { v, _ := c.Set("k", 1); return v },
		"Refresh": func(ctx context.Context, c *oncecache.Cache[string, int]) int {
			v, _ := c.Refresh(ctx, "k", anew(makes(1)))
			return v
		},
		"not modified": func(ctx context.Context, c *oncecache.Cache[string, int]) int {
			v, _ := c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 0, oncecache.ErrNotModified }))
			return v
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			closed, ttl := 0, time.Hour
			c := oncecache.MustNew(config{TTLFunc: func(string, int) time.Duration { return ttl }, Close: func(string, int) error { closed++; return nil }})
			c.Set("k", 1)
			ttl = 0
			if v := write(t.Context(), c); v != 1 {
				t.Errorf("%s returns %d", name, v)
			}
			synctest.Wait()
			wantAbsent(t, c, "k")
			if c.Close(t.Context()); closed != 1 {
				t.Errorf("%s: closed %d times", name, closed)
			}
			wantEven(t, c)
		})
	}
}

// The callers that wait for a creation get its value, though it has expired by then.
func TestWaitersGetExpiredValue(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			settings := lasting(0)
			var closed atomic.Int32
			if closes {
				settings.Close = func(string, int) error { closed.Add(1); return nil }
			}
			c := oncecache.MustNew(settings)
			var got, calls atomic.Int32
			for range 10 {
				go func() {
					l, err := c.Acquire(t.Context(), "k", func(context.Context, string) (int, error) {
						calls.Add(1)
						time.Sleep(time.Second)
						return 1, nil
					})
					if err != nil || l.Value() != 1 || closed.Load() != 0 {
						t.Errorf("%d, %v, closed %d times", l.Value(), err, closed.Load())
					}
					got.Add(1)
					time.Sleep(time.Second)
					l.Release()
				}()
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if calls.Load() != 1 || got.Load() != 10 || closes && closed.Load() != 1 {
				t.Errorf("%d calls, %d got a value, closed %d times", calls.Load(), got.Load(), closed.Load())
			}
			wantLen(t, c, 0)
		})
	}
}

// A lease holds a value that expires, which is closed after the last release.
func TestLeasesOutliveTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		settings := lasting(time.Minute)
		settings.Close = func(string, int) error { closed.Add(1); return nil }
		c := oncecache.MustNew(settings)
		l, err := c.Acquire(t.Context(), "k", makes(1))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		wantAbsent(t, c, "k")
		if l.Value() != 1 || closed.Load() != 0 {
			t.Errorf("the lease has %d, closed %d times", l.Value(), closed.Load())
		}
		l2, err := c.Acquire(t.Context(), "k", makes(2))
		if err != nil || l2.Value() != 2 {
			t.Errorf("%d, %v", l2.Value(), err)
		}
		l.Release()
		if closed.Load() != 1 {
			t.Errorf("closed %d times", closed.Load())
		}
		l2.Release()
		c.Close(t.Context())
	})
}

// A panic of TTL, or runtime.Goexit, is one of the create function; the value that it was
// asked about is closed, and the key is free again.
func TestTTLEndsBadly(t *testing.T) {
	for end, f := range map[string]func(){"panic": func() { panic("disk full") }, "Goexit": runtime.Goexit} {
		for how, store := range map[string]func(ctx context.Context, c *oncecache.Cache[string, int]){
			"GetOrCreate":        func(_ context.Context, c *oncecache.Cache[string, int]) { c.GetOrCreate("k", with(1)) },
			"GetOrCreateContext": func(ctx context.Context, c *oncecache.Cache[string, int]) { c.GetOrCreateContext(ctx, "k", makes(1)) },
			"Acquire": func(ctx context.Context, c *oncecache.Cache[string, int]) {
				c.Acquire(context.Background(), "k", makes(1))
			},
			"GetOrCreateMany": func(ctx context.Context, c *oncecache.Cache[string, int]) {
				c.GetOrCreateMany(ctx, []string{"k"}, func(context.Context, []string) (map[string]int, error) { return map[string]int{"k": 1}, nil })
			},
			"Set":         func(_ context.Context, c *oncecache.Cache[string, int]) { c.Set("k", 1) },
			"SetIfAbsent": func(_ context.Context, c *oncecache.Cache[string, int]) { c.SetIfAbsent("k", 1) },
			"Refresh":     func(ctx context.Context, c *oncecache.Cache[string, int]) { c.Refresh(ctx, "old", anew(makes(1))) },
			"not modified": func(ctx context.Context, c *oncecache.Cache[string, int]) {
				c.Refresh(ctx, "old", anew(func(context.Context, string) (int, error) { return 0, oncecache.ErrNotModified }))
			},
		} {
			for _, closes := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					closed, bad := map[int]int{}, false
					settings := config{TTLFunc: func(string, int) time.Duration {
						if bad {
							f()
						}
						return time.Hour
					}}
					if closes {
						settings.Close = func(_ string, v int) error {
							mu.Lock()
							defer mu.Unlock()
							closed[v]++
							return nil
						}
					}
					c := oncecache.MustNew(settings)
					c.Set("old", 7)
					bad = true
					within(t, time.Minute, func() {
						defer func() { recover() }()
						store(t.Context(), c)
					})
					bad = false
					synctest.Wait()
					wantAbsent(t, c, "k")
					wantGet(t, c, "old", 7)
					if v, err := c.GetOrCreate("k", with(2)); v != 2 || err != nil {
						t.Errorf("%s, %s: %d, %v afterwards", how, end, v, err)
					}
					c.Close(t.Context())
					made := 1
					if how == "Set" || how == "SetIfAbsent" || how == "not modified" {
						made = 0 // the cache has not taken it, or there is none
					}
					if want := fmt.Sprint(map[int]int{1: made, 2: 1, 7: 1}); closes && fmt.Sprint(map[int]int{1: closed[1], 2: closed[2], 7: closed[7]}) != want {
						t.Errorf("%s, %s: closed %v, want %v", how, end, closed, want)
					}
					wantEven(t, c)
				})
			}
		}
	}
}

// Jitter spreads the ends of values that come together over its part of the TTL, and takes no
// more than that.
func TestTTLJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := oncecache.Config[int, int]{TTLFunc: func(int, int) time.Duration { return 100 * time.Second }, TTLJitter: 0.25}
		c := oncecache.MustNew(settings)
		for k := range 1000 {
			c.Set(k, k)
		}
		time.Sleep(75*time.Second - time.Millisecond)
		synctest.Wait()
		if n := c.Len(); n != 1000 {
			t.Errorf("%d are left before the first may expire", n)
		}
		for left := 1000; left > 0; left -= 200 { // 5 seconds each
			if n := c.Len(); n < left-100 || n > left+100 {
				t.Errorf("%d are left, want about %d", n, left)
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := c.Len(); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// Sweep finds what has expired, though the timer has not.
func TestSweepRemovesWhatHasExpired(t *testing.T) {
	c := oncecache.MustNew(lasting(time.Nanosecond))
	removed := 0
	for i := 0; removed == 0; i++ {
		for j := range 100 {
			c.Set(fmt.Sprint(j), j)
		}
		removed += oncecache.Sweep(c)
	}
	for c.Len() > 0 {
		runtime.Gosched()
	}
}

// A cache without values has no timer, and one with values has one.
func TestLifetimesHaveOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var ends []time.Duration
		var mu sync.Mutex
		c := oncecache.MustNew(oncecache.Config[int, int]{
			TTLFunc: func(_, v int) time.Duration { return time.Duration(v) * time.Second },
			Close: func(k, v int) error {
				mu.Lock()
				defer mu.Unlock()
				if got := time.Since(began); k != 1 && got != time.Duration(v)*time.Second {
					t.Errorf("%d is closed after %v", v, got)
				}
				ends = append(ends, time.Since(began))
				return nil
			},
		})
		for _, v := range []int{50, 20, 70, 10, 30, 60, 40, 10} {
			c.Set(100*v+c.Len(), v)
		}
		time.Sleep(15 * time.Second)
		if n := oncecache.Lifetimes(c); n != 6 || c.Len() != 6 {
			t.Errorf("%d lifetimes, %d values", n, c.Len())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(ends) != 8 || oncecache.LifetimeTimer(c) {
			t.Errorf("%v closed; there is a timer: %t", ends, oncecache.LifetimeTimer(c))
		}
		c.Set(1, 10000)
		if !oncecache.LifetimeTimer(c) {
			t.Error("there is no timer")
		}
		if c.Delete(1); oncecache.LifetimeTimer(c) {
			t.Error("there is a timer for nothing")
		}
	})
}

// A timer that is not needed any more is not kept until it would have fired.
func TestTimersAreStoppedInMemory(t *testing.T) {
	for name, ttl := range map[string]func(k string, n int) time.Duration{
		"nothing is left": func(string, int) time.Duration { return 24 * time.Hour },
		"sooner and sooner": func(k string, n int) time.Duration { // another one takes the timer's place
			return 24*time.Hour - time.Duration(n)*time.Second
		},
	} {
		t.Run(name, func(t *testing.T) { timersAreStopped(t, ttl, name != "nothing is left") })
	}
}

func timersAreStopped(t *testing.T, ttl func(string, int) time.Duration, other bool) {
	c := oncecache.MustNew(config{TTLFunc: ttl})
	if other {
		c.Set("other", 0)
	}
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapObjects
	}
	for before, round := uint64(0), 0; round < 2; round++ { // the first makes what stays
		before = heap()
		for i := range 10_000 {
			c.Set("k", 10_000*round+i)
			c.Delete("k")
		}
		if more := int64(heap() - before); round > 0 && more > 5000 {
			t.Errorf("%d objects are left of 10,000 values that were deleted", more)
		}
	}
	runtime.KeepAlive(c)
}

// Settings of TTL that make no sense are refused.
func TestNewRefusesJitter(t *testing.T) {
	ttl := func(string, int) time.Duration { return 1 }
	for want, bad := range map[string]config{
		"oncecache: Config.TTLJitter -0.1: must be in 0..1":                                {TTLFunc: ttl, TTLJitter: -0.1},
		"oncecache: Config.TTLJitter 1.5: must be in 0..1":                                 {TTLFunc: ttl, TTLJitter: 1.5},
		"oncecache: Config.TTLJitter NaN: must be in 0..1":                                 {TTLFunc: ttl, TTLJitter: math.NaN()},
		"oncecache: Config.TTLJitter +Inf: must be in 0..1":                                {TTLFunc: ttl, TTLJitter: math.Inf(1)},
		"oncecache: Config.TTLJitter 0.5: must be 0 without Config.TTL and Config.TTLFunc": {TTLJitter: 0.5},
	} {
		if c, err := oncecache.New(bad); c != nil || err == nil || err.Error() != want {
			t.Errorf("New returns %v, %v, want %s", c, err, want)
		}
	}
}

// setAgain are the ways in which the very value of "k", which is 1, comes again.
var setAgain = map[string]func(ctx context.Context, c *oncecache.Cache[string, int]){
	"Set": func(_ context.Context, c *oncecache.Cache[string, int]) { c.Set("k", 1) },
	"Refresh": func(ctx context.Context, c *oncecache.Cache[string, int]) {
		c.Refresh(ctx, "k", anew(makes(1)))
	},
	"not modified": func(ctx context.Context, c *oncecache.Cache[string, int]) {
		c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 0, oncecache.ErrNotModified }))
	},
	"Reload": func(ctx context.Context, c *oncecache.Cache[string, int]) {
		c.Refresh(ctx, "k", func(_ context.Context, _ string, old int, _ bool) (int, error) { return old, nil })
	},
}

const forGood = time.Duration(math.MaxInt64)

// lasts is when a value that is set now is renewed for the first time, and when it goes; zero:
// never.
func lasts(ttl, ahead time.Duration) (renewed, ends time.Duration) {
	if ttl == forGood {
		return 0, 0
	}
	return max(ttl-ahead, ttl/2), ttl
}

// A value that comes again has the lifetime that TTL says then, and nothing of those that it had
// before: neither their ends nor the times of their renewals, whether they were shorter, longer or
// for good.
func TestTheVeryValueLastsAnew(t *testing.T) {
	const ahead = 20 * time.Second
	for name, again := range setAgain {
		for _, renews := range []bool{false, true} {
			for _, ttls := range [][]time.Duration{
				{time.Minute, time.Hour}, {time.Hour, time.Minute}, {time.Minute, time.Minute},
				{time.Minute, forGood}, {forGood, time.Minute}, {forGood, forGood},
				{time.Minute, forGood, time.Minute}, {forGood, time.Minute, forGood}, {time.Hour, forGood, time.Minute},
				{time.Minute, time.Minute, time.Minute, time.Minute}, {time.Minute, 10 * time.Second},
			} {
				t.Run(fmt.Sprintf("%s, renews %t, %v", name, renews, ttls), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						asked := 0
						var first time.Time // when Renew was first called
						settings := config{
							Close:   func(string, int) error { return nil },
							TTLFunc: func(string, int) time.Duration { asked++; return ttls[asked-1] },
						}
						if renews {
							settings.RenewAhead = ahead
							settings.Renew = func(context.Context, string, int) (int, error) {
								if first.IsZero() {
									first = time.Now()
								}
								return 0, errRefused
							}
						}
						c := oncecache.MustNew(settings)
						c.Set("k", 1)
						for range ttls[1:] {
							time.Sleep(35 * time.Second)
							synctest.Wait()
							wantGet(t, c, "k", 1)
							again(t.Context(), c)
						}
						if asked != len(ttls) || !first.IsZero() {
							t.Errorf("TTL was called %d times, Renew at %v", asked, first)
						}
						began := time.Now()
						renewed, ends := lasts(ttls[len(ttls)-1], ahead)
						for time.Since(began) < 2*time.Hour {
							synctest.Wait()
							at := time.Since(began)
							if _, ok := c.Get("k"); ok != (ends == 0 || at < ends) {
								t.Fatalf("after %v, there: %t", at, ok)
							}
							synctest.Wait()
							if called := !first.IsZero(); called != (renews && renewed > 0 && at >= renewed) {
								t.Fatalf("after %v, renewed: %t", at, called)
							}
							time.Sleep(time.Second)
						}
						want := oncecache.Stats{Closed: 1, Expired: 1}
						if ends == 0 {
							want = oncecache.Stats{}
						}
						if got := c.Stats(); got.Closed != want.Closed || got.Expired != want.Expired {
							t.Errorf("%+v", got)
						}
						if err := c.Close(t.Context()); err != nil || c.Stats().Closed != 1 {
							t.Errorf("%v, %d closed", err, c.Stats().Closed)
						}
					})
				})
			}
		}
	}
}

// A value that stays for good from now on keeps no other from going at its time.
func TestForGoodBesideOthers(t *testing.T) {
	for name, again := range setAgain {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ttl := time.Minute
				c := oncecache.MustNew(config{Close: func(string, int) error { return nil }, TTLFunc: func(string, int) time.Duration { return ttl }})
				c.Set("k", 1)
				ttl = time.Hour
				c.Set("l", 2)
				ttl = forGood
				again(t.Context(), c)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				wantGet(t, c, "k", 1)
				wantAbsent(t, c, "l")
				if n := oncecache.Lifetimes(c); n != 0 {
					t.Errorf("%d places are still to be looked at", n)
				}
				c.Close(t.Context())
			})
		})
	}
}

// arrivals make 1 the value of "k", where the key has none.
var arrivals = map[string]func(c *oncecache.Cache[string, int]){
	"GetOrCreate":        func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", with(1)) },
	"GetOrCreateContext": func(c *oncecache.Cache[string, int]) { c.GetOrCreateContext(context.Background(), "k", makes(1)) },
	"Load":               func(c *oncecache.Cache[string, int]) { c.Load(context.Background(), "k") },
	"Acquire": func(c *oncecache.Cache[string, int]) {
		l, _ := c.Acquire(context.Background(), "k", makes(1))
		l.Release()
	},
	"GetOrCreateMany": func(c *oncecache.Cache[string, int]) { c.GetOrCreateMany(context.Background(), []string{"k"}, nil) },
	"Refresh":         func(c *oncecache.Cache[string, int]) { c.Refresh(context.Background(), "k", nil) },
	"Set":             func(c *oncecache.Cache[string, int]) { c.Set("k", 1) },
	"SetIfAbsent":     func(c *oncecache.Cache[string, int]) { c.SetIfAbsent("k", 1) },
}

// A value is there for its TTL, rounded up to milliseconds, however it came. No use prolongs that, and
// no jitter that takes nothing.
func TestTTL(t *testing.T) {
	jitters := map[string]float64{"Set": 1e-300, "Load": 1e-300}
	for name, make := range arrivals {
		for ttl, lasts := range map[time.Duration]time.Duration{
			1:                            time.Millisecond,
			time.Millisecond:             time.Millisecond,
			time.Millisecond + 1:         2 * time.Millisecond,
			time.Hour:                    time.Hour,
			10 * 365 * 24 * time.Hour:    10 * 365 * 24 * time.Hour,
			1500 * time.Microsecond:      2 * time.Millisecond,
			time.Second - 1:              time.Second,
			90 * time.Minute:             90 * time.Minute,
			24*time.Hour + 5*time.Minute: 24*time.Hour + 5*time.Minute,
		} {
			t.Run(fmt.Sprint(name, " ", ttl), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := oncecache.MustNew(config{TTL: ttl, TTLJitter: jitters[name], Create: makes(1)})
					make(c)
					end := time.Now().Add(lasts)
					for range 3 {
						if v, ok := c.Get("k"); v != 1 || !ok {
							t.Errorf("%v before its end: %d, %t", time.Until(end), v, ok)
						}
						time.Sleep(time.Until(end) / 2)
					}
					time.Sleep(time.Until(end) - 1)
					if v, ok := c.Get("k"); v != 1 || !ok {
						t.Errorf("just before its end: %d, %t", v, ok)
					}
					time.Sleep(time.Nanosecond)
					synctest.Wait()
					if v, ok := c.Get("k"); ok || c.Len() != 0 {
						t.Errorf("at its end: %d, %t, %d values", v, ok, c.Len())
					}
					if n := c.Stats().Expired; n != 1 {
						t.Errorf("%d expired", n)
					}
				})
			})
		}
	}
}

// TTLJitter subtracts up to its fraction from a constant TTL: all values are there until the
// shortest time, none after the longest, and they do not go together.
func TestTTLWithJitter(t *testing.T) {
	const ttl, n = time.Hour, 200
	for _, jitter := range []float64{0.01, 0.1, 0.5, 1} {
		t.Run(fmt.Sprint(jitter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{TTL: ttl, TTLJitter: jitter})
				for k := range n {
					c.Set(strconv.Itoa(k), k)
				}
				taken := time.Duration(float64(ttl) * jitter)
				time.Sleep(ttl - taken)
				if there := c.Len(); there != n {
					t.Errorf("%d of %d are there at the shortest time", there, n)
				}
				const parts = 4
				before := n
				for part := 1; part <= parts; part++ {
					time.Sleep(taken / parts)
					synctest.Wait()
					there := c.Len()
					if gone := before - there; gone < n/parts/3 {
						t.Errorf("%d go in part %d", gone, part)
					}
					before = there
				}
				if before != 0 {
					t.Errorf("%d are there at the longest time", before)
				}
			})
		})
	}
}

// A value with jitter is renewed before its end, whatever that is.
func TestRenewAheadWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		c := oncecache.MustNew(config{
			TTL: time.Hour, TTLJitter: 0.5, RenewAhead: 10 * time.Minute,
			Create: func(_ context.Context, k string) (int, error) { calls[k]++; return calls[k], nil },
		})
		for k := range 20 {
			c.Load(t.Context(), strconv.Itoa(k))
		}
		for range 120 {
			time.Sleep(time.Minute)
			for k := range 20 {
				if _, ok := c.Get(strconv.Itoa(k)); !ok {
					t.Fatalf("%d has gone, though it is used each minute", k)
				}
				synctest.Wait()
			}
		}
		for k, n := range calls {
			if n < 3 || n > 6 { // after 25 to 51 minutes each, and a minute until the next use
				t.Errorf("%s was made %d times in two hours", k, n)
			}
		}
	})
}

// Jitter takes as much of the time for which a value is fresh as of its TTL; and that may be very short.
func TestFreshWithJitter(t *testing.T) {
	for _, tt := range []struct {
		ttl, fresh time.Duration
		jitter     float64
	}{
		{24 * time.Hour, 5 * time.Minute, 0.1}, {24 * time.Hour, 5 * time.Minute, 1}, {365 * 24 * time.Hour, 1, 0},
		{time.Hour, time.Hour - 1, 0},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				c := oncecache.MustNew(config{
					TTL: tt.ttl, TTLJitter: tt.jitter, RenewAhead: tt.ttl - tt.fresh,
					Create: func(context.Context, string) (int, error) { calls.Add(1); return 2, nil },
				})
				const n = 20
				for k := range n {
					c.Set(strconv.Itoa(k), 1)
				}
				time.Sleep(tt.fresh)
				synctest.Wait()
				for k := range n {
					c.Get(strconv.Itoa(k))
				}
				synctest.Wait()
				if got := calls.Load() + int32(n-c.Len()); got != n {
					t.Errorf("after %v, %d of %d are renewed or gone", tt.fresh, got, n)
				}
			})
		})
	}
}

// askers are calls that create, and get the error.
var askers = map[string]func(c *oncecache.Cache[string, int], create func() (int, error)) error{
	"GetOrCreate": func(c *oncecache.Cache[string, int], create func() (int, error)) error {
		_, err := c.GetOrCreate("k", create)
		return err
	},
	"GetOrCreateContext": func(c *oncecache.Cache[string, int], create func() (int, error)) error {
		_, err := c.GetOrCreateContext(context.Background(), "k", func(context.Context, string) (int, error) { return create() })
		return err
	},
	"Acquire": func(c *oncecache.Cache[string, int], create func() (int, error)) error {
		l, err := c.Acquire(context.Background(), "k", func(context.Context, string) (int, error) { return create() })
		l.Release()
		return err
	},
	"GetOrCreateMany": func(c *oncecache.Cache[string, int], create func() (int, error)) error {
		_, err := c.GetOrCreateMany(context.Background(), []string{"k"}, func(context.Context, []string) (map[string]int, error) {
			v, err := create()
			return map[string]int{"k": v}, oncecache.KeyErrors[string]{"k": err}
		})
		var each oncecache.KeyErrors[string]
		if errors.As(err, &each) {
			return each["k"]
		}
		return err
	},
}

// A constant ErrorTTL keeps each error for so long, and not longer: callers get it meanwhile without
// a call. TTLJitter takes nothing from it.
func TestErrorTTL(t *testing.T) {
	for name, ask := range askers {
		for _, settings := range []config{
			{ErrorTTL: time.Minute},
			{ErrorTTL: time.Minute, TTL: time.Second, TTLJitter: 1},
			{ErrorTTL: time.Minute, MaxEntries: 10},
			{ErrorTTL: time.Minute, Close: func(string, int) error { return nil }},
			{ErrorTTL: time.Minute, Close: func(string, int) error { return nil }, CloseBeforeCreate: true},
		} {
			t.Run(fmt.Sprint(name, " ", settings.TTL, settings.MaxEntries, settings.CloseBeforeCreate), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := oncecache.MustNew(settings)
					calls := 0
					want := func(when string, n int) {
						t.Helper()
						err := ask(c, func() (int, error) { calls++; return 0, errRefused })
						if synctest.Wait(); !errors.Is(err, errRefused) || calls != n {
							t.Errorf("%s: %v after %d calls, want %d", when, err, calls, n)
						}
					}
					for n := 1; n <= 3; n++ {
						want("at first", n)
						want("at once", n)
						time.Sleep(time.Minute - 1)
						want("just before its end", n)
						if _, ok := c.Get("k"); ok || c.Len() != 0 {
							t.Error("an error is a value")
						}
						time.Sleep(time.Nanosecond)
						synctest.Wait()
					}
					c.Close(t.Context())
				})
			})
		}
	}
}

// Less than zero keeps an error until a call sets or deletes the key.
func TestErrorTTLBelowZero(t *testing.T) {
	for name, end := range map[string]func(c *oncecache.Cache[string, int]){
		"Set":         func(c *oncecache.Cache[string, int]) { c.Set("k", 7) },
		"SetIfAbsent": func(c *oncecache.Cache[string, int]) { c.SetIfAbsent("k", 7) },
		"Delete":      func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"Clear":       func(c *oncecache.Cache[string, int]) { c.Clear() },
		"nothing":     func(*oncecache.Cache[string, int]) {},
	} {
		for _, ttl := range []time.Duration{-1, -time.Hour} {
			t.Run(fmt.Sprint(name, " ", ttl), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := oncecache.MustNew(config{ErrorTTL: ttl})
					c.GetOrCreate("k", failing)
					time.Sleep(50 * 365 * 24 * time.Hour)
					if _, err := c.GetOrCreate("k", unexpected(t)); !errors.Is(err, errRefused) {
						t.Errorf("after fifty years: %v", err)
					}
					end(c)
					v, err := c.GetOrCreate("k", with(7))
					if kept := name == "nothing"; kept && !errors.Is(err, errRefused) || !kept && (v != 7 || err != nil) {
						t.Errorf("%d, %v", v, err)
					}
				})
			})
		}
	}
}

// Panics, timeouts, errors of a Refresh of a value that is there, and errors that nobody hears are
// not kept. Without ErrorTTL none is.
func TestErrorTTLKeepsNoTroubles(t *testing.T) {
	plain := config{ErrorTTL: -1, CreateTimeout: time.Minute}
	for name, tt := range map[string]struct {
		config
		fail func(t *testing.T, c *oncecache.Cache[string, int])
	}{
		"no ErrorTTL": {config{}, func(t *testing.T, c *oncecache.Cache[string, int]) { c.GetOrCreate("k", failing) }},
		"panic": {plain, func(t *testing.T, c *oncecache.Cache[string, int]) {
			defer func() { recover() }()
			c.GetOrCreate("k", func() (int, error) { panic(errRefused) })
		}},
		"timeout": {plain, func(t *testing.T, c *oncecache.Cache[string, int]) {
			c.GetOrCreateContext(t.Context(), "k", func(ctx context.Context, _ string) (int, error) { <-ctx.Done(); return failing() })
		}},
		"Refresh": {plain, func(t *testing.T, c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
			if _, err := c.Refresh(t.Context(), "k", anew(refusing)); !errors.Is(err, errRefused) {
				t.Errorf("Refresh: %v", err)
			}
			if v, err := c.GetOrCreate("k", unexpected(t)); v != 1 || err != nil {
				t.Errorf("after a Refresh that fails: %d, %v", v, err)
			}
			oncecache.CompareAndDelete(c, "k", 1)
		}},
		"cycle": {plain, func(t *testing.T, c *oncecache.Cache[string, int]) {
			_, err := c.GetOrCreateContext(t.Context(), "k", func(ctx context.Context, k string) (int, error) {
				return c.GetOrCreateContext(ctx, k, refusing)
			})
			wantCycle(t, err, "k", "k")
		}},
		"left": {plain, func(t *testing.T, c *oncecache.Cache[string, int]) {
			ctx, leave := context.WithCancel(t.Context())
			go c.GetOrCreateContext(ctx, "k", func(ctx context.Context, _ string) (int, error) { <-ctx.Done(); return failing() })
			synctest.Wait()
			leave()
			synctest.Wait()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(tt.config)
				tt.fail(t, c)
				if v, err := c.GetOrCreate("k", with(7)); v != 7 || err != nil {
					t.Errorf("afterwards: %d, %v", v, err)
				}
			})
		})
	}
}

// A value that expires is told as that, whether the timer removes it, or another call meets
// it first, and gives its weight back.
func TestExpiredValuesAreTold(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		ttl    time.Duration
		remove func(*oncecache.Cache[string, int])
	}{
		"the timer":        {time.Second, func(*oncecache.Cache[string, int]) { time.Sleep(2 * time.Second) }},
		"at once":          {0, func(*oncecache.Cache[string, int]) {}},
		"Delete of it":     {0, func(c *oncecache.Cache[string, int]) { c.Delete("k") }},
		"Get and Set":      {-1, func(c *oncecache.Cache[string, int]) { c.Get("k"); c.Set("l", 1); c.Delete("l") }},
		"Sweep":            {time.Nanosecond, func(c *oncecache.Cache[string, int]) { time.Sleep(time.Millisecond); oncecache.Sweep(c) }},
		"another creation": {0, func(c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(makes(3))); c.Delete("k") }},
	} {
		for _, closes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				told := map[int][]oncecache.Reason{}
				config := oncecache.Config[string, int]{
					MaxWeight: 100, Weight: func(_ string, v int) int64 { return int64(v) },
					TTLFunc: func(_ string, v int) time.Duration {
						if v == 7 {
							return tt.ttl
						}
						return math.MaxInt64
					},
					OnRemove: func(_ string, v int, why oncecache.Reason, _ error) {
						mu.Lock()
						defer mu.Unlock()
						told[v] = append(told[v], why)
					},
				}
				if closes {
					config.Close = func(string, int) error { return nil }
				}
				c := oncecache.MustNew(config)
				if v, err := c.GetOrCreate("k", with(7)); v != 7 || err != nil {
					t.Errorf("%s: %d, %v", name, v, err)
				}
				tt.remove(c)
				synctest.Wait()
				if v, ok := c.Get("k"); ok {
					t.Errorf("%s: Get finds %d", name, v)
				}
				synctest.Wait()
				mu.Lock()
				reasons := told[7]
				mu.Unlock()
				if len(reasons) != 1 || reasons[0] != oncecache.ReasonExpired {
					t.Errorf("%s: told of %v", name, reasons)
				}
				if s := c.Stats(); s.Expired != 1 || s.Evicted != 0 || s.Idle != 0 || s.Weight != 0 {
					t.Errorf("%s: %+v", name, s)
				}
				if err := c.Close(ctx); err != nil || oncecache.Pending(c) != 0 {
					t.Errorf("%s: %v, %d pending", name, err, oncecache.Pending(c))
				}
			})
		}
	}
}

// A look-up that meets an expired value is a miss. A renewal is no look-up, and is a
// creation for OnCreate.
func TestExpiryIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var created atomic.Int64
		c := oncecache.MustNew(oncecache.Config[string, int]{
			TTLFunc:     func(string, int) time.Duration { return time.Minute },
			Renew:       func(_ context.Context, _ string, old int) (int, error) { time.Sleep(time.Second); return old + 1, nil },
			RenewAhead:  10 * time.Second,
			OnCreate:    func(string, time.Duration, error) { created.Add(1) },
			RecordStats: true,
		})
		c.GetOrCreate("k", with(1)) // a miss
		time.Sleep(55 * time.Second)
		c.Get("k") // a hit, which starts a renewal
		time.Sleep(2 * time.Second)
		if v, ok := c.Get("k"); v != 2 || !ok { // a hit
			t.Error(v, ok)
		}
		time.Sleep(2 * time.Minute)
		if v, ok := c.Get("k"); ok { // a miss
			t.Error(v)
		}
		s := c.Stats()
		if s.Hits != 2 || s.Misses != 2 || s.Created != 2 || created.Load() != 2 || s.Renewals != 1 || s.CreateTime != time.Second || s.Expired != 1 {
			t.Errorf("%+v, %d created", s, created.Load())
		}
		c.Close(t.Context())
	})
}

// What Renew makes has a weight of its own. If that is too much, it is not kept, and what
// it should replace leaves, as after Refresh.
func TestRenewedValuesAreWeighed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{
			MaxWeight: 10, Weight: func(_ string, v int) int64 { return int64(v) },
			TTLFunc:    func(string, int) time.Duration { return time.Minute },
			Renew:      func(_ context.Context, _ string, old int) (int, error) { return old + 4, nil },
			RenewAhead: 10 * time.Second,
		})
		c.Set("k", 3)
		for _, want := range []int64{7, 0} { // 11 is too much
			time.Sleep(55 * time.Second)
			c.Get("k")
			synctest.Wait()
			if got := c.Stats().Weight; got != want || oncecache.Places(c) != c.Len() {
				t.Errorf("weight %d, want %d", got, want)
			}
		}
		if c.Len() != 0 {
			t.Error(c.Len())
		}
		c.Close(t.Context())
	})
}

// A TTL begins when TTLFunc has returned.
func TestTTLBeginsWhenTTLFuncReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTLFunc: func(string, int) time.Duration {
			time.Sleep(time.Minute)
			return time.Hour
		}})
		c.Set("k", 1)
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		wantGet(t, c, "k", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		wantAbsent(t, c, "k")
	})
}

// The very value that Set brings again is as new, whether values are closed or not: it has not been idle since it
// first came.
func TestTheVeryValueIsNotIdle(t *testing.T) {
	for name, close := range closing {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{IdleTimeout: time.Minute, Close: close})
				defer c.Close(t.Context())
				c.Set("k", 1)
				time.Sleep(59 * time.Second)
				c.Set("k", 1)
				time.Sleep(30 * time.Second)
				if _, ok := c.Peek("k"); !ok {
					t.Errorf("removed 30s after it was set: %+v", c.Stats())
				}
			})
		})
	}
}

// Nor does it make room before values that came earlier.
func TestTheVeryValueIsNotOld(t *testing.T) {
	for name, close := range closing {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(config{MaxEntries: 2, Close: close})
			c.Set("again", 1)
			c.Set("old", 2)
			c.Set("again", 1)
			c.Set("more", 3)
			if _, ok := c.Peek("again"); !ok {
				t.Error("the value that was just set makes room before an old one")
			}
		})
	}
}

var closing = map[string]func(string, int) error{
	"values are closed": func(string, int) error { return nil },
	"values are not":    nil,
}

// The very value that Set brings again ends what is to replace it, however long it lasts from now on: the callers
// of the Refresh get it, and what the function makes is closed. With CloseBeforeCreate, it has returned before the
// key gets another value.
func TestTheVeryValueEndsRefresh(t *testing.T) {
	for _, ttl := range []time.Duration{time.Hour, forGood, 0, -1} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, CloseBeforeCreate %t", ttl, alone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var next atomic.Int64
					next.Store(int64(time.Hour))
					var closed [4]atomic.Int32
					c := oncecache.MustNew(config{
						CloseBeforeCreate: alone,
						Close:             func(_ string, v int) error { closed[v].Add(1); return nil },
						TTLFunc:           func(string, int) time.Duration { return time.Duration(next.Load()) },
					})
					c.Set("k", 1)
					var refreshers []*call
					for range 2 {
						refreshers = append(refreshers, startCall(func() (int, error) {
							return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { time.Sleep(time.Second); return 2, nil }))
						}))
					}
					synctest.Wait()
					next.Store(int64(ttl))
					if old, ok := c.Set("k", 1); old != 1 || !ok {
						t.Errorf("Set returns %d, %t", old, ok)
					}
					next.Store(int64(time.Hour))
					stays := 0
					if ttl > 0 {
						stays = 1
					}
					wantLen(t, c, stays)
					for _, x := range refreshers {
						if r := x.wait(t); r.value != 1 || r.err != nil {
							t.Errorf("Refresh returns %d, %v", r.value, r.err)
						}
					}
					began := time.Now()
					v, err := c.GetOrCreate("k", with(3))
					if want := 3 - 2*stays; v != want || err != nil {
						t.Errorf("%d, %v, want %d", v, err, want)
					}
					if waits := alone && stays == 0; waits != (time.Since(began) == time.Second) {
						t.Errorf("GetOrCreate waits for %v", time.Since(began))
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if first, made, created := closed[1].Load(), closed[2].Load(), closed[3].Load(); first != int32(1-stays) || made != 1 || created != 0 {
						t.Errorf("closed: %d, %d, %d", first, made, created)
					}
					wantLen(t, c, 1)
					if err := c.Close(t.Context()); err != nil || closed[1].Load() != 1 || oncecache.Pending(c) != 0 || oncecache.Claims(c) != 0 {
						t.Errorf("%v, closed %d times, %d pending, %d claims", err, closed[1].Load(), oncecache.Pending(c), oncecache.Claims(c))
					}
				})
			})
		}
	}
}
