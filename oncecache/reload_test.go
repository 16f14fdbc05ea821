//go:build !modelcheck

package oncecache_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

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
