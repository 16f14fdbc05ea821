//go:build !modelcheck

package oncecache_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// sinceOf returns since when each key is being created.
func sinceOf(c *oncecache.Cache[string, int]) map[string]time.Time {
	all := map[string]time.Time{}
	for f := range c.InFlight() {
		all[f.Key] = f.Since
	}
	return all
}

// A creation began when its caller found nothing, whichever method that called and whatever the
// cache is set to: not when the cache was made, when the creation before it began, or when another
// caller joined. What the recorder is told agrees.
func TestInFlightSince(t *testing.T) {
	type cache = *oncecache.Cache[string, int]
	type function = func() (int, error)
	within := func(f function) func(context.Context, string) (int, error) {
		return func(context.Context, string) (int, error) { return f() }
	}
	settings := map[string]config{
		"default":       {},
		"Close":         {Close: func(string, int) error { return nil }},
		"MaxEntries":    {MaxEntries: 10},
		"IdleTimeout":   {IdleTimeout: time.Hour},
		"TTL":           {TTLFunc: func(string, int) time.Duration { return time.Hour }},
		"ErrorTTL":      {ErrorTTLFunc: func(string, error) time.Duration { return time.Hour }},
		"CreateTimeout": {CreateTimeout: time.Hour},
		"turns":         {Close: func(string, int) error { return nil }, CloseBeforeCreate: true},
	}
	for of, s := range settings {
		for name, create := range map[string]func(c cache, f function){
			"GetOrCreate":        func(c cache, f function) { c.GetOrCreate("k", f) },
			"GetOrCreateContext": func(c cache, f function) { c.GetOrCreateContext(context.Background(), "k", within(f)) },
			"GetOrCreateContext that may leave": func(c cache, f function) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				c.GetOrCreateContext(ctx, "k", within(f))
			},
			"Acquire": func(c cache, f function) {
				l, _ := c.Acquire(context.Background(), "k", within(f))
				l.Release()
			},
			"GetOrCreateMany": func(c cache, f function) {
				c.GetOrCreateMany(context.Background(), []string{"k", "l"}, func(_ context.Context, keys []string) (map[string]int, error) {
					v, err := f()
					return map[string]int{"k": v, "l": v}, err
				})
			},
			"Refresh of nothing": func(c cache, f function) { c.Refresh(context.Background(), "k", anew(within(f))) },
			"Refresh": func(c cache, f function) {
				c.Set("k", 0)
				c.Refresh(context.Background(), "k", anew(within(f)))
			},
			"Reload": func(c cache, f function) {
				c.Set("k", 0)
				c.Refresh(context.Background(), "k", func(context.Context, string, int, bool) (int, error) { return f() })
			},
		} {
			t.Run(of+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := s
					var took []time.Duration
					s.RecordStats, s.OnCreate = true, func(_ string, d time.Duration, _ error) { took = append(took, d) }
					c := oncecache.MustNew(s)
					keys := 1
					if name == "GetOrCreateMany" {
						keys = 2
					}
					for range 3 {
						time.Sleep(time.Minute)
						began := time.Now()
						end := make(chan struct{})
						calls := []*call{startCall(func() (int, error) {
							create(c, func() (int, error) { <-end; return 1, nil })
							return 0, nil
						})}
						for range 3 { // alone, and when others have joined
							synctest.Wait()
							all := sinceOf(c)
							if !all["k"].Equal(began) || len(all) != keys || keys == 2 && !all["l"].Equal(began) {
								t.Errorf("%v are being created, want since %v", all, began)
							}
							time.Sleep(time.Second)
							calls = append(calls, startCall(func() (int, error) { return c.Wait(t.Context(), "k") }))
						}
						close(end)
						for _, x := range calls {
							x.wait(t)
						}
						synctest.Wait()
						if all := sinceOf(c); len(all) != 0 {
							t.Errorf("%v are being created in the end", all)
						}
						if !slices.Equal(took, slices.Repeat([]time.Duration{3 * time.Second}, keys)) {
							t.Errorf("OnCreate was told of %v", took)
						}
						took = nil
						c.Clear()
						synctest.Wait()
					}
					if got, want := c.Stats().CreateTime, time.Duration(9*keys)*time.Second; got != want {
						t.Errorf("CreateTime is %v, want %v", got, want)
					}
					if err := c.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A Renew began with the first use of the value that was due.
func TestInFlightSinceOfARenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		c := oncecache.MustNew(renewing(func(context.Context, string, int) (int, error) { <-end; return 2, nil }))
		c.Set("k", 1)
		time.Sleep(45 * time.Second)
		began := time.Now()
		wantGet(t, c, "k", 1)
		time.Sleep(5 * time.Second)
		wantGet(t, c, "k", 1)
		if all := sinceOf(c); len(all) != 1 || !all["k"].Equal(began) {
			t.Errorf("%v are being created, want since %v", all, began)
		}
		close(end)
		synctest.Wait()
		wantGet(t, c, "k", 2)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
