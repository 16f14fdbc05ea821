//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// A cache in a variable of a package is used by tests in bubbles of synctest, whose clock begins
// anew in each and stands still outside, and by tests that run in real time: in any order.

// stays is how long values and errors of these tests stay.
const stays = 8 * time.Millisecond

// stages are where a cache is used, one after the other: b is a bubble, r is real time. It is made in
// the first. In an o it is made only, outside.
var stages = strings.Fields("b ob r rb br bb rbr brb bbb obr obrb rrbb")

// inStage runs f in a bubble or outside.
func inStage(t *testing.T, stage rune, f func(t *testing.T)) {
	if stage == 'b' {
		synctest.Test(t, f)
	} else {
		f(t)
	}
}

// What is set in a stage is there until its time is over, and goes then, whatever the stages
// before have left in the cache, and whatever their timers had to do.
func TestValuesGoInEachBubble(t *testing.T) {
	for name, settings := range map[string]oncecache.Config[string, int]{
		"TTL":         {TTLFunc: func(string, int) time.Duration { return stays }},
		"IdleTimeout": {IdleTimeout: stays},
		"both":        {TTLFunc: func(string, int) time.Duration { return stays }, IdleTimeout: stays},
	} {
		for _, order := range stages {
			// The later a stage begins, the later or sooner its timers are than those of stages before.
			for _, later := range []time.Duration{0, stays / 4, -stays / 4} {
				t.Run(fmt.Sprint(name, " ", order, " ", later), func(t *testing.T) {
					gone := make(chan string, 100)
					settings.OnRemove = func(k string, _ int, _ oncecache.Reason, _ error) { gone <- k }
					var c *oncecache.Cache[string, int]
					for i, stage := range order {
						inStage(t, stage, func(t *testing.T) {
							if c == nil {
								c = oncecache.MustNew(settings)
							}
							if stage == 'o' {
								return
							}
							if stage == 'b' {
								time.Sleep(time.Second + time.Duration(i)*later)
							}
							k := fmt.Sprint("key ", i)
							c.Set(k, i)
							if stage == 'b' {
								wantGoesInBubble(t, c, k)
							} else {
								wantRemoved(t, c, k, gone)
							}
							c.Set(fmt.Sprint("left ", i), i)
						})
					}
				})
			}
		}
	}
}

// wantGoesInBubble reports it unless k is there for its time, and not long after it.
func wantGoesInBubble(t *testing.T, c *oncecache.Cache[string, int], k string) {
	t.Helper()
	time.Sleep(stays - 1)
	synctest.Wait()
	found := false
	for key := range c.Keys() { // which is no use of it
		found = found || key == k
	}
	if !found {
		t.Errorf("%s is gone before its time", k)
	}
	time.Sleep(2 * stays)
	synctest.Wait()
	if _, ok := c.Get(k); ok {
		t.Errorf("%s is there after its time", k)
	}
}

// wantRemoved waits until k is removed, in real time.
func wantRemoved(t *testing.T, c *oncecache.Cache[string, int], k string, gone chan string) {
	t.Helper()
	for late := time.After(5 * time.Second); ; {
		select {
		case removed := <-gone:
			if removed != k {
				continue
			}
			if _, ok := c.Get(k); ok {
				t.Errorf("%s is there when it has left", k)
			}
		case <-late:
			t.Errorf("%s does not leave", k)
		}
		return
	}
}

// Likewise errors that are kept.
func TestErrorsGoInEachBubble(t *testing.T) {
	for _, order := range stages {
		t.Run(order, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			for i, stage := range order {
				inStage(t, stage, func(t *testing.T) {
					if c == nil {
						c = oncecache.MustNew(oncecache.Config[string, int]{ErrorTTLFunc: func(string, error) time.Duration { return stays }})
					}
					if stage == 'o' {
						return
					}
					k, calls := fmt.Sprint("key ", i), 0
					ask := func() { c.GetOrCreate(k, func() (int, error) { calls++; return 0, errors.New("refused") }) }
					ask()
					if stage == 'b' {
						time.Sleep(stays - 1)
						ask()
						if calls != 1 {
							t.Error("the error is not kept for its time")
						}
						time.Sleep(1)
						ask()
					} else {
						for begun := time.Now(); calls < 2 && time.Since(begun) < 10*time.Second; runtime.Gosched() {
							ask()
						}
					}
					if calls != 2 {
						t.Errorf("%d calls when the time of the first error is over", calls)
					}
					c.GetOrCreate(fmt.Sprint("left ", i), func() (int, error) { return 0, errors.New("refused") })
				})
			}
		})
	}
}

// Values are renewed in each bubble.
func TestRenewInEachBubble(t *testing.T) {
	for _, order := range []string{"b", "ob", "bb", "obb"} {
		t.Run(order, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			for i, stage := range order {
				inStage(t, stage, func(t *testing.T) {
					if c == nil {
						c = oncecache.MustNew(oncecache.Config[string, int]{
							TTLFunc: func(string, int) time.Duration { return time.Hour }, RenewAhead: 20 * time.Minute,
							Renew: func(_ context.Context, _ string, old int) (int, error) { return old + 1, nil },
						})
					}
					if stage == 'o' {
						return
					}
					k := fmt.Sprint("key ", i)
					c.Set(k, 1)
					time.Sleep(45 * time.Minute)
					c.Get(k)
					synctest.Wait()
					if v, ok := c.Get(k); v != 2 || !ok {
						t.Errorf("%s has %d, %t, want the renewed value", k, v, ok)
					}
				})
			}
		})
	}
}

// A value of one stage may be removed in another, though its timer is of the first.
func TestRemovedInAnotherBubble(t *testing.T) {
	for _, order := range stages {
		for name, remove := range map[string]func(c *oncecache.Cache[string, int]){
			"Delete": func(c *oncecache.Cache[string, int]) { c.Delete("k") },
			"Clear":  func(c *oncecache.Cache[string, int]) { c.Clear() },
			"Set":    func(c *oncecache.Cache[string, int]) { c.Set("k", 2); c.Delete("k") },
			"Sweep":  func(c *oncecache.Cache[string, int]) { oncecache.Sweep(c); c.Delete("k") },
		} {
			t.Run(order+" "+name, func(t *testing.T) {
				var c *oncecache.Cache[string, int]
				for _, stage := range order {
					inStage(t, stage, func(t *testing.T) {
						if c == nil {
							c = oncecache.MustNew(oncecache.Config[string, int]{
								IdleTimeout: time.Hour, TTLFunc: func(string, int) time.Duration { return time.Hour },
							})
						}
						remove(c)
						if n := c.Len(); n != 0 {
							t.Errorf("%d values are left", n)
						}
						c.Set("k", 1)
						if v, ok := c.Get("k"); v != 1 || !ok {
							t.Errorf("the key has %d, %t", v, ok)
						}
					})
				}
			})
		}
	}
}

// The time of a creation is that of its own clock.
func TestCreationsInABubble(t *testing.T) {
	took := make(chan time.Duration, 1)
	c := oncecache.MustNew(oncecache.Config[string, int]{
		RecordStats: true, OnCreate: func(_ string, d time.Duration, _ error) { took <- d },
	})
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c.GetOrCreateContext(t.Context(), "k", func(context.Context, string) (int, error) {
			time.Sleep(time.Minute)
			for f := range c.InFlight() {
				if !f.Since.Equal(begun) {
					t.Errorf("the creation began %v, want %v", f.Since, begun)
				}
			}
			return 1, nil
		})
		if d := <-took; d != time.Minute {
			t.Errorf("the creation took %v", d)
		}
	})
}
