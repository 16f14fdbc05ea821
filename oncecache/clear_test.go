//go:build !modelcheck

package oncecache_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Clear counts values only, drops errors that are kept, and forgets creations:
// their callers get what they make, which is not kept.
func TestClear(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			s := newShop()
			c := oncecache.MustNew(config{
				Close: func(_ string, v int) error { // of two batches, maybe at once
					s.mu.Lock()
					defer s.mu.Unlock()
					s.closed = append(s.closed, v)
					return nil
				},
				ErrorTTLFunc: func(string, error) time.Duration { return -1 },
			})
			s.Cache = c
			if n := c.Clear(); n != 0 {
				t.Errorf("%d removed from an empty cache", n)
			}
			c.Set("value", 1)
			leased := s.acquire(t, "leased", 2)
			c.GetOrCreate("failed", failing)
			p := newPilot()
			flight := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", p.create) })
			<-p.ctx
			joined := start(c, "k", unexpected(t))
			synctest.Wait()
			if n := c.Clear(); n != 2 {
				t.Errorf("%s: %d removed, want 2", w.name, n)
			}
			wantLen(t, c, 0)
			if n := oncecache.Kept(c); n != 0 {
				t.Errorf("%d errors are kept", n)
			}
			synctest.Wait()
			s.wantClosed(t, 1)
			if v, err := c.GetOrCreate("failed", with(4)); v != 4 || err != nil {
				t.Errorf("%d, %v after the error was cleared", v, err)
			}
			if v, err := c.GetOrCreate("k", with(5)); v != 5 || err != nil {
				t.Errorf("%d, %v while the forgotten creation runs", v, err)
			}
			p.end <- with(3)
			wantAll(t, []*call{flight, joined}, result{value: 3})
			synctest.Wait()
			s.wantClosed(t, 1, 3)
			wantGet(t, c, "k", 5)
			leased.Release()
			s.wantClosed(t, 1, 3, 2)
			if n := c.Clear(); n != 2 {
				t.Errorf("%s: %d removed, want 2", w.name, n)
			}
			if err := c.Close(t.Context()); err != nil || len(s.closed) != 5 || oncecache.Pending(c) != 0 {
				t.Errorf("%v, closed %v", err, s.closed)
			}
			if n := c.Clear(); n != 0 {
				t.Errorf("%d removed from a closed cache", n)
			}
		})
	}
	var zero oncecache.Cache[string, int]
	if n := zero.Clear(); n != 0 {
		t.Errorf("%d removed from a zero cache", n)
	}
}

// Clear does not wait for Close functions, and none of them ends its goroutine.
func TestClearWaitsForNoClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { time.Sleep(time.Hour); runtime.Goexit(); return nil }})
		for i := range 100 {
			c.Set(fmt.Sprint(i), i)
		}
		began := time.Now()
		cleared := startCall(func() (int, error) { return c.Clear(), nil })
		wantAll(t, []*call{cleared}, result{value: 100})
		if d := time.Since(began); d != 0 {
			t.Errorf("cleared after %v", d)
		}
		if err := c.Close(t.Context()); err == nil || c.Stats().Closed != 100 {
			t.Errorf("%v, %d closed", err, c.Stats().Closed)
		}
	})
}
