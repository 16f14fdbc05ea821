//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

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

// A value is there for its TTL, rounded up to milliseconds, however it came. No use prolongs that.
func TestTTL(t *testing.T) {
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
					c := oncecache.MustNew(config{TTL: ttl, Create: makes(1)})
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
					time.Sleep(1)
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
						time.Sleep(1)
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
