//go:build !modelcheck

package oncecache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// An error that nobody has waited for is not kept, whether the creation was called
// off or went on all the same; one that somebody gets is.
func TestErrorsThatNobodyHearsAreNotKept(t *testing.T) {
	for _, w := range ways {
		for _, keep := range []bool{false, true} {
			for _, stays := range []bool{false, true} {
				if !w.leaves {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					c := oncecache.MustNew(config{KeepCreating: keep, ErrorTTL: func(string, error) time.Duration { return -1 }})
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
						t.Errorf("%s, KeepCreating %t: %d errors are kept, want %d", w.name, keep, n, want)
					}
					c.GetOrCreate("k", func() (int, error) { called = true; return 1, nil })
					if called == stays {
						t.Errorf("%s, KeepCreating %t: called %t the next time", w.name, keep, called)
					}
				})
			}
		}
	}
}

// Errors of many keys do not pile up behind those that are kept for longer.
func TestShortErrorsGoBeforeLongOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{ErrorTTL: func(k int, _ error) time.Duration {
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
