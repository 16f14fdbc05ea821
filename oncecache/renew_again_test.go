//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

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
		if wantGet(t, c, "k", 2); calls != 1 {
			t.Errorf("renewed %d times", calls)
		}
		c.Close(t.Context())
	})
}
