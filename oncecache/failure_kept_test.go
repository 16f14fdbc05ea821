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

// An error that nobody has waited for is not kept, whether the creation was called
// off or went on all the same; one that somebody gets is.
func TestErrorsThatNobodyHearsAreNotKept(t *testing.T) {
	for _, w := range ways {
		for range 1 {
			for _, stays := range []bool{false, true} {
				if !w.leaves {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					c := oncecache.MustNew(config{ErrorTTLFunc: func(string, error) time.Duration { return -1 }})
					p := newPilot()
					ctx, leave := context.WithCancel(t.Context())
					gone := startCall(func() (int, error) { return w.ask(ctx, c, "k", p.create) })
					<-p.ctx
					var heard []*call
					if stays {
						heard = append(heard, start(c, "k", unexpected(t)))
						synctest.Wait()
					}
					leave()
					wantAll(t, []*call{gone}, left)
					p.end <- failing
					wantAll(t, heard, result{err: errRefused})
					synctest.Wait()
					want, called := int64(0), false
					if stays {
						want = 1
					}
					if n := oncecache.Kept(c); n != want {
						t.Errorf("%s: %d errors are kept, want %d", w.name, n, want)
					}
					c.GetOrCreate("k", func() (int, error) { called = true; return 1, nil })
					if called == stays {
						t.Errorf("%s: called %t the next time", w.name, called)
					}
				})
			}
		}
	}
}

// Errors of many keys do not pile up behind those that are kept for longer.
func TestShortErrorsGoBeforeLongOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{ErrorTTLFunc: func(k int, _ error) time.Duration {
			switch {
			case k%1000 == 0:
				return -1
			case k%100 == 0:
				return time.Hour
			}
			return time.Second
		}})
		most := 0
		for k := range 10_000 { // in 1000 seconds
			c.GetOrCreate(k, failing)
			time.Sleep(time.Second / 10)
			synctest.Wait()
			_, entries := oncecache.Creating(c)
			if most = max(most, entries-k/100); int64(entries) != oncecache.Kept(c) {
				t.Fatalf("%d entries, %d errors are kept", entries, oncecache.Kept(c))
			}
		}
		if most > 13 {
			t.Errorf("%d were kept for a second at a time, of which 10 had not expired", most)
		}
		time.Sleep(2 * time.Hour)
		c.GetOrCreate(10_000, failing)
		c.GetOrCreate(10_001, failing)
		if _, entries := oncecache.Creating(c); entries != 12 {
			t.Errorf("%d are left of 10 that are kept for ever, and two that are new", entries)
		}
	})
}

// Whoever gets an error, by whatever call, and calls again starts anew: nobody gets
// the same error twice, and one creation answers all who come together.
func TestWhoKnowsOfAFailureStartsAnew(t *testing.T) {
	for _, owner := range ways {
		synctest.Test(t, func(t *testing.T) {
			const rounds = 5
			var c oncecache.Cache[string, int]
			var calls, running atomic.Int32
			fails := func(context.Context, string) (int, error) {
				if n := running.Add(1); n != 1 {
					t.Errorf("%s: %d creations at a time", owner.name, n)
				}
				defer running.Add(-1)
				time.Sleep(time.Second)
				return 0, fmt.Errorf("call %d", calls.Add(1))
			}
			var all []*call
			for i := range 4 * len(ways) {
				w := ways[i%len(ways)]
				if i == 0 {
					w = owner
				}
				all = append(all, startCall(func() (int, error) {
					seen := map[string]bool{}
					for range rounds {
						v, err := w.ask(t.Context(), &c, "k", fails)
						if v != 0 || err == nil || seen[err.Error()] {
							t.Errorf("%s, %s: %d, %v after %v", owner.name, w.name, v, err, seen)
							break
						}
						seen[err.Error()] = true
					}
					return 0, nil
				}))
				if i == 0 {
					synctest.Wait()
				}
			}
			wantAll(t, all, result{})
			if n := calls.Load(); n != rounds {
				t.Errorf("%s: %d calls, want %d", owner.name, n, rounds)
			}
			wantEven(t, &c)
		})
	}
}
