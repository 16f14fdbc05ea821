//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// A Refresh that begins when another has ended calls its own function, however that ended, and
// though not all who wait for it have left: it takes nothing that was made before it began.
func TestRefreshTakesNothingThatWasMadeBefore(t *testing.T) {
	for name, end := range map[string]func() (int, error){
		"a new value":  with(2),
		"the same":     with(1),
		"not modified": func() (int, error) { return 0, oncecache.ErrNotModified },
		"an error":     failing,
		"a panic":      diskFull,
		"Goexit":       exiting,
	} {
		for _, closes := range []bool{false, true} {
			for _, lasts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, closes %t, lasts %t", name, closes, lasts), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						settings := config{}
						if closes {
							settings.Close = func(string, int) error { return nil }
						}
						if lasts {
							settings.TTLFunc = func(string, int) time.Duration { return time.Hour }
						}
						c := oncecache.MustNew(settings)
						c.Set("k", 1)
						for v := 10; v < 13; v++ {
							p := newPilot()
							earlier := []*call{startCall(func() (int, error) { return c.Refresh(t.Context(), "k", anew(p.create)) })}
							<-p.ctx
							for range 3 {
								earlier = append(earlier, startCall(func() (int, error) {
									return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return unexpected(t)() }))
								}))
							}
							synctest.Wait()
							p.end <- end
							<-earlier[0].done // the others may be about to return
							if got, err := c.Refresh(t.Context(), "k", anew(makes(v))); got != v || err != nil {
								t.Errorf("%d, %v, want %d", got, err, v)
							}
							for _, x := range earlier {
								<-x.done
							}
							wantGet(t, c, "k", v)
							c.Set("k", 1)
						}
						c.Close(t.Context())
					})
				})
			}
		}
	}
}

// So does one that begins in what follows a Refresh: the Close function of the value that it has
// replaced, and those that are told of it.
func TestRefreshInWhatFollowsARefresh(t *testing.T) {
	for _, in := range []string{"Close", "OnRemove", "OnCreate"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *oncecache.Cache[string, int]
				var began atomic.Int32
				follow := func(of string) {
					if of == in && began.Add(1) == 1 {
						if v, err := c.Refresh(t.Context(), "k", anew(makes(3))); v != 3 || err != nil {
							t.Errorf("%d, %v, want 3", v, err)
						}
					}
				}
				c = oncecache.MustNew(config{
					Close:    func(string, int) error { follow("Close"); return nil },
					OnRemove: func(string, int, oncecache.Reason, error) { follow("OnRemove") },
					OnCreate: func(string, time.Duration, error) { follow("OnCreate") },
				})
				c.Set("k", 1)
				if v, err := c.Refresh(t.Context(), "k", anew(makes(2))); v != 2 || err != nil {
					t.Errorf("%d, %v, want 2", v, err)
				}
				synctest.Wait()
				wantGet(t, c, "k", 3)
				if err := c.Close(t.Context()); err != nil || began.Load() == 0 || c.Stats().Closed != 3 {
					t.Errorf("%v, %d, %d closed", err, began.Load(), c.Stats().Closed)
				}
			})
		})
	}
}
