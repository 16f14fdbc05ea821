//go:build !modelcheck

package oncecache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Peek returns what Get would, whatever the key is.
func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTL: time.Hour, ErrorTTL: -1})
		want := func(when string, v int, ok bool) {
			t.Helper()
			if got, found := c.Peek("k"); got != v || found != ok {
				t.Errorf("%s: Peek is %d, %t", when, got, found)
			}
			if got, found := c.Get("k"); got != v || found != ok {
				t.Errorf("%s: Get is %d, %t", when, got, found)
			}
		}
		want("absent", 0, false)
		end := make(chan struct{})
		go c.GetOrCreate("k", func() (int, error) { <-end; return 1, nil })
		synctest.Wait()
		want("being created", 0, false)
		close(end)
		synctest.Wait()
		want("created", 1, true)
		c.Set("k", 2)
		want("set", 2, true)
		go c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { time.Sleep(time.Minute); return 3, nil }))
		synctest.Wait()
		want("being refreshed", 2, true)
		time.Sleep(time.Minute)
		synctest.Wait()
		want("refreshed", 3, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		want("expired", 0, false)
		c.GetOrCreate("k", failing)
		want("with an error that is kept", 0, false)
		c.Set("k", 4)
		c.Delete("k")
		want("deleted", 0, false)
		c.Set("k", 5)
		c.Close(t.Context())
		want("closed", 0, false)
	})
}

// Peek works on a zero cache, and panics for a key that cannot be compared, as Get does.
func TestPeekOfOddCaches(t *testing.T) {
	var zero oncecache.Cache[any, int]
	if v, ok := zero.Peek("k"); v != 0 || ok {
		t.Errorf("a zero cache has %d, %t", v, ok)
	}
	zero.Set("k", 1)
	if v, ok := zero.Peek("k"); v != 1 || !ok {
		t.Errorf("the key has %d, %t", v, ok)
	}
	defer func() {
		if recover() == nil {
			t.Error("a slice is a key")
		}
	}()
	zero.Peek([]int{1})
}

// looks are uses of a value that is there, and calls that are none.
var looks = map[string]struct {
	look  func(c *oncecache.Cache[string, int], k string)
	isUse bool
}{
	"Get":  {func(c *oncecache.Cache[string, int], k string) { c.Get(k) }, true},
	"Peek": {func(c *oncecache.Cache[string, int], k string) { c.Peek(k) }, false},
	"Info": {func(c *oncecache.Cache[string, int], k string) { c.Info(k) }, false},
}

// A value that is only looked at makes room as one that nobody has used.
func TestPeekIsNoUseForSieve(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(config{MaxEntries: 2})
			c.Set("old", 1)
			c.Set("new", 2)
			for range 3 {
				tt.look(c, "old")
			}
			c.Set("next", 3)
			if _, ok := c.Peek("old"); ok != tt.isUse {
				t.Errorf("the old value is there: %t", ok)
			}
			if _, ok := c.Peek("new"); ok == tt.isUse {
				t.Errorf("the new value is there: %t", ok)
			}
		})
	}
}

// A value that is only looked at is idle.
func TestPeekIsNoUseForIdleTimeout(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{IdleTimeout: time.Minute})
				c.Set("k", 1)
				for range 6 * 3 {
					time.Sleep(10 * time.Second)
					synctest.Wait()
					tt.look(c, "k")
				}
				if _, ok := c.Peek("k"); ok != tt.isUse {
					t.Errorf("there after three minutes: %t", ok)
				}
				if n := c.Stats().Idle; n == 0 != tt.isUse {
					t.Errorf("%d were idle", n)
				}
				c.Close(t.Context())
			})
		})
	}
}

// To look at a value that is due neither renews it nor keeps the next use from doing so.
func TestPeekStartsNoRenewal(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o origin
				c := oncecache.MustNew(config{TTL: time.Hour, RenewAhead: 20 * time.Minute, Create: o.create})
				c.Load(t.Context(), "k")
				time.Sleep(45 * time.Minute)
				synctest.Wait()
				for range 3 {
					tt.look(c, "k")
					synctest.Wait()
				}
				if tt.isUse {
					o.wantAsked(t, "k", "k")
					return
				}
				o.wantAsked(t, "k")
				c.Get("k")
				synctest.Wait()
				o.wantAsked(t, "k", "k")
			})
		})
	}
}

// Peek is counted neither as a hit nor as a miss.
func TestPeekIsNotCounted(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(config{RecordStats: true})
			tt.look(c, "k")
			c.Set("k", 1)
			tt.look(c, "k")
			tt.look(c, "k")
			want := oncecache.Stats{Recorded: true}
			if tt.isUse {
				want.Hits, want.Misses = 2, 1
			}
			if s := c.Stats(); s != want {
				t.Errorf("%+v, want %+v", s, want)
			}
		})
	}
}
