//go:build !modelcheck

package oncecache_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// wantInfo reports it unless k has a value that became new and expires at these times, and so many
// leases.
func wantInfo(t *testing.T, c *oncecache.Cache[string, int], k string, created, expires time.Time, leases int) {
	t.Helper()
	i, ok := c.Info(k)
	if !ok || !i.Created.Equal(created) || !i.Expires.Equal(expires) || i.Leases != leases {
		t.Errorf("%q has %+v, %t, want it created %v, to expire %v, and %d leases", k, i, ok, created, expires, leases)
	}
}

func wantNoInfo(t *testing.T, c *oncecache.Cache[string, int], k string) {
	t.Helper()
	if i, ok := c.Info(k); ok || i != (oncecache.Info{}) {
		t.Errorf("%q has %+v, %t, want nothing", k, i, ok)
	}
}

// A value is new when it was made, set or found not modified, and not when it was used or a Refresh
// failed. It expires a TTL later.
func TestInfo(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		do    func(c *oncecache.Cache[string, int])
		isNew bool
	}{
		"Set":     {func(c *oncecache.Cache[string, int]) { c.Set("k", 2) }, true},
		"Refresh": {func(c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(makes(2))) }, true},
		"Refresh that finds it not modified": {func(c *oncecache.Cache[string, int]) {
			c.Refresh(ctx, "k", func(context.Context, string, int, bool) (int, error) { return 0, oncecache.ErrNotModified })
		}, true},
		"Delete and Set":             {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.Set("k", 2) }, true},
		"Delete and GetOrCreate":     {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.GetOrCreate("k", with(2)) }, true},
		"Delete and SetIfAbsent":     {func(c *oncecache.Cache[string, int]) { c.Delete("k"); c.SetIfAbsent("k", 2) }, true},
		"Refresh that fails":         {func(c *oncecache.Cache[string, int]) { c.Refresh(ctx, "k", anew(refusing)) }, false},
		"Get":                        {func(c *oncecache.Cache[string, int]) { c.Get("k") }, false},
		"GetOrCreate":                {func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", failing) }, false},
		"SetIfAbsent":                {func(c *oncecache.Cache[string, int]) { c.SetIfAbsent("k", 2) }, false},
		"Acquire":                    {func(c *oncecache.Cache[string, int]) { l, _ := c.Acquire(ctx, "k", refusing); l.Release() }, false},
		"CompareAndDelete of others": {func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 7) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{TTL: time.Hour})
				time.Sleep(time.Minute)
				begun := time.Now()
				c.GetOrCreate("k", with(1))
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				tt.do(c)
				if tt.isNew {
					begun = time.Now()
				}
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				time.Sleep(time.Until(begun.Add(time.Hour)) - 1)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
				time.Sleep(1)
				synctest.Wait()
				wantNoInfo(t, c, "k")
			})
		})
	}
}

// A value that is set again while it is there, or that a Refresh returns once more, is as if it was
// new.
func TestInfoOfTheVeryValue(t *testing.T) {
	for name, again := range map[string]func(c *oncecache.Cache[string, int]){
		"Set":     func(c *oncecache.Cache[string, int]) { c.Set("k", 1) },
		"Refresh": func(c *oncecache.Cache[string, int]) { c.Refresh(context.Background(), "k", anew(makes(1))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{TTL: time.Hour, Close: func(string, int) error {
					t.Error("the value is closed")
					return nil
				}})
				c.Set("k", 1)
				time.Sleep(59 * time.Minute)
				again(c)
				begun := time.Now()
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
			})
		})
	}
}

// A function says when each value expires.
func TestInfoOfTTLFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTLFunc: func(_ string, v int) time.Duration { return time.Duration(v) }})
		begun := time.Now()
		c.Set("k", int(time.Hour))
		wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
		c.Set("k", int(time.Second+1))
		wantInfo(t, c, "k", begun, begun.Add(time.Second+time.Millisecond), 0) // it is rounded up
		c.Set("k", math.MaxInt64)
		wantInfo(t, c, "k", begun, time.Time{}, 0)
		c.Set("k", 0)
		wantNoInfo(t, c, "k")
	})
}

// Each setting that gives values a place in the order makes the cache know when they were created;
// only a TTL says when they expire.
func TestInfoKnowsWhatTheSettingsNeed(t *testing.T) {
	one := func(string, int) int64 { return 1 }
	for name, tt := range map[string]struct {
		config
		created, expires bool
	}{
		"none":        {config{}, false, false},
		"Close":       {config{Close: func(string, int) error { return nil }}, false, false},
		"OnRemove":    {config{OnRemove: func(string, int, oncecache.Reason, error) {}}, false, false},
		"RecordStats": {config{RecordStats: true}, false, false},
		"MaxEntries":  {config{MaxEntries: 5}, true, false},
		"MaxWeight":   {config{MaxWeight: 5, Weight: one}, true, false},
		"IdleTimeout": {config{IdleTimeout: time.Hour}, true, false},
		"TTL":         {config{TTL: time.Hour}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(tt.config)
				var created, expires time.Time
				if tt.created {
					created = time.Now()
				}
				if tt.expires {
					expires = time.Now().Add(time.Hour)
				}
				c.Set("k", 1)
				time.Sleep(time.Minute)
				wantInfo(t, c, "k", created, expires, 0)
				c.Close(t.Context())
			})
		})
	}
	var zero oncecache.Cache[string, int]
	wantNoInfo(t, &zero, "k")
	zero.Set("k", 1)
	wantInfo(t, &zero, "k", time.Time{}, time.Time{}, 0)
}

// Leases are counted from Acquire to Release, also those of a Refresh that is under way, and of
// many goroutines at once.
func TestInfoCountsLeases(t *testing.T) {
	for name, settings := range map[string]config{
		"Close":      {Close: func(string, int) error { return nil }},
		"OnRemove":   {OnRemove: func(string, int, oncecache.Reason, error) {}},
		"MaxEntries": {MaxEntries: 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(settings)
				leases := func(want int) {
					t.Helper()
					synctest.Wait()
					if i, ok := c.Info("k"); i.Leases != want || !ok {
						t.Errorf("%d leases, %t, want %d", i.Leases, ok, want)
					}
				}
				first, _ := c.Acquire(t.Context(), "k", makes(1))
				leases(1)
				second, _ := c.Acquire(t.Context(), "k", refusing)
				leases(2)
				first.Release()
				leases(1)
				first.Release() // nothing happens
				leases(1)

				end := make(chan struct{})
				go c.Refresh(t.Context(), "k", func(_ context.Context, _ string, old int, _ bool) (int, error) {
					<-end
					return 0, oncecache.ErrNotModified
				})
				leases(2)
				close(end)
				leases(1)

				const many = 8
				var held [many]oncecache.Lease[string, int]
				together(many, func(i int) { // often enough that two of them collide, and are counted apart
					for range 20_000 {
						held[i].Release()
						held[i], _ = c.Acquire(context.Background(), "k", refusing)
					}
				})
				leases(1 + many)
				together(many, func(i int) { held[i].Release() })
				leases(1)

				c.Set("k", 2) // the lease of the old value is none of the new one
				leases(0)
				second.Release()
				leases(0)
				c.Close(t.Context())
			})
		})
	}
}

// A batch holds its values until it returns.
func TestInfoCountsLeasesOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { return nil }})
		c.Set("k", 1)
		end := make(chan struct{})
		go c.GetOrCreateMany(t.Context(), []string{"k", "l"}, func(context.Context, []string) (map[string]int, error) {
			<-end
			return nil, nil
		})
		synctest.Wait()
		if i, _ := c.Info("k"); i.Leases != 1 {
			t.Errorf("%d leases while the batch needs it", i.Leases)
		}
		close(end)
		synctest.Wait()
		if i, _ := c.Info("k"); i.Leases != 0 {
			t.Errorf("%d leases when the batch has returned", i.Leases)
		}
		c.Close(t.Context())
	})
}

// A key without a value has no Info, why ever that is.
func TestInfoOfNoValue(t *testing.T) {
	for name, make := range map[string]func(c *oncecache.Cache[string, int]){
		"absent":           func(*oncecache.Cache[string, int]) {},
		"deleted":          func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Delete("k") },
		"being created":    func(c *oncecache.Cache[string, int]) { go c.GetOrCreate("k", halfAnHour) },
		"expired":          func(c *oncecache.Cache[string, int]) { c.Set("k", 1); time.Sleep(time.Hour) },
		"an error is kept": func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", failing) },
		"closed":           func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Close(context.Background()) },
		"being created after it has expired": func(c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
			time.Sleep(59 * time.Minute)
			go c.Refresh(context.Background(), "k", anew(func(context.Context, string) (int, error) { return halfAnHour() }))
			time.Sleep(time.Minute)
		},
		"leased, and deleted": func(c *oncecache.Cache[string, int]) {
			c.Acquire(context.Background(), "k", makes(1))
			c.Delete("k")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{TTL: time.Hour, ErrorTTL: -1, Close: func(string, int) error { return nil }})
				make(c)
				synctest.Wait()
				wantNoInfo(t, c, "k")
				time.Sleep(time.Hour)
			})
		})
	}
}

// halfAnHour is a create function that takes a while.
func halfAnHour() (int, error) { time.Sleep(30 * time.Minute); return 7, nil }

// While a value is refreshed, Info is that of the old one.
func TestInfoDuringRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTL: time.Hour})
		begun := time.Now()
		c.Set("k", 1)
		time.Sleep(10 * time.Minute)
		go c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return halfAnHour() }))
		synctest.Wait()
		wantInfo(t, c, "k", begun, begun.Add(time.Hour), 1)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		begun = time.Now()
		wantInfo(t, c, "k", begun, begun.Add(time.Hour), 0)
	})
}

// TTLJitter shows in Expires, and that is when the value goes.
func TestInfoShowsJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTL: time.Hour, TTLJitter: 0.5})
		seen := map[time.Time]bool{}
		for range 20 {
			c.Set("k", 1)
			i, _ := c.Info("k")
			if lasts := time.Until(i.Expires); lasts < 30*time.Minute || lasts > time.Hour {
				t.Fatalf("the value lasts %v", lasts)
			}
			seen[i.Expires] = true
			if !i.Created.Equal(time.Now()) {
				t.Errorf("created %v", i.Created)
			}
		}
		if len(seen) < 10 {
			t.Errorf("%d times of 20 values", len(seen))
		}
		i, _ := c.Info("k")
		time.Sleep(time.Until(i.Expires) - 1)
		synctest.Wait()
		if _, ok := c.Get("k"); !ok {
			t.Error("the value has gone before its time")
		}
		time.Sleep(1)
		synctest.Wait()
		if _, ok := c.Get("k"); ok {
			t.Error("the value is there after its time")
		}
	})
}
