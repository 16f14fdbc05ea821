//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// setAgain are the ways in which the very value of "k", which is 1, comes again.
var setAgain = map[string]func(ctx context.Context, c *oncecache.Cache[string, int]){
	"Set": func(_ context.Context, c *oncecache.Cache[string, int]) { c.Set("k", 1) },
	"Refresh": func(ctx context.Context, c *oncecache.Cache[string, int]) {
		c.Refresh(ctx, "k", anew(makes(1)))
	},
	"not modified": func(ctx context.Context, c *oncecache.Cache[string, int]) {
		c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 0, oncecache.ErrNotModified }))
	},
	"Reload": func(ctx context.Context, c *oncecache.Cache[string, int]) {
		c.Refresh(ctx, "k", func(_ context.Context, _ string, old int, _ bool) (int, error) { return old, nil })
	},
}

const forGood = time.Duration(math.MaxInt64)

// lasts is when a value that is set now is renewed for the first time, and when it goes; zero:
// never.
func lasts(ttl, ahead time.Duration) (renewed, ends time.Duration) {
	if ttl == forGood {
		return 0, 0
	}
	return max(ttl-ahead, ttl/2), ttl
}

// A value that comes again has the lifetime that TTL says then, and nothing of those that it had
// before: neither their ends nor the times of their renewals, whether they were shorter, longer or
// for good.
func TestTheVeryValueLastsAnew(t *testing.T) {
	const ahead = 20 * time.Second
	for name, again := range setAgain {
		for _, renews := range []bool{false, true} {
			for _, ttls := range [][]time.Duration{
				{time.Minute, time.Hour}, {time.Hour, time.Minute}, {time.Minute, time.Minute},
				{time.Minute, forGood}, {forGood, time.Minute}, {forGood, forGood},
				{time.Minute, forGood, time.Minute}, {forGood, time.Minute, forGood}, {time.Hour, forGood, time.Minute},
				{time.Minute, time.Minute, time.Minute, time.Minute},
			} {
				t.Run(fmt.Sprintf("%s, renews %t, %v", name, renews, ttls), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						asked := 0
						var first time.Time // when Renew was first called
						settings := config{
							Close:   func(string, int) error { return nil },
							TTLFunc: func(string, int) time.Duration { asked++; return ttls[asked-1] },
						}
						if renews {
							settings.RenewAhead = ahead
							settings.Renew = func(context.Context, string, int) (int, error) {
								if first.IsZero() {
									first = time.Now()
								}
								return 0, errRefused
							}
						}
						c := oncecache.MustNew(settings)
						c.Set("k", 1)
						for range ttls[1:] {
							time.Sleep(35 * time.Second)
							synctest.Wait()
							wantGet(t, c, "k", 1)
							again(t.Context(), c)
						}
						if asked != len(ttls) || !first.IsZero() {
							t.Errorf("TTL was called %d times, Renew at %v", asked, first)
						}
						began := time.Now()
						renewed, ends := lasts(ttls[len(ttls)-1], ahead)
						for time.Since(began) < 2*time.Hour {
							synctest.Wait()
							at := time.Since(began)
							if _, ok := c.Get("k"); ok != (ends == 0 || at < ends) {
								t.Fatalf("after %v, there: %t", at, ok)
							}
							synctest.Wait()
							if called := !first.IsZero(); called != (renews && renewed > 0 && at >= renewed) {
								t.Fatalf("after %v, renewed: %t", at, called)
							}
							time.Sleep(time.Second)
						}
						want := oncecache.Stats{Closed: 1, Expired: 1}
						if ends == 0 {
							want = oncecache.Stats{}
						}
						if got := c.Stats(); got.Closed != want.Closed || got.Expired != want.Expired {
							t.Errorf("%+v", got)
						}
						if err := c.Close(t.Context()); err != nil || c.Stats().Closed != 1 {
							t.Errorf("%v, %d closed", err, c.Stats().Closed)
						}
					})
				})
			}
		}
	}
}
