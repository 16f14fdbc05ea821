//go:build !modelcheck

package oncecache_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

// A log has the counts that say something.
func TestStatsAreLogged(t *testing.T) {
	s := newShop()
	s.GetOrCreate("k", with(1))
	s.GetOrCreate("l", with(2))
	s.GetOrCreate("none", failing)
	s.Delete("k")
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("cache", "stats", s.Stats())
	if want := "stats.created=2 stats.failed=1 stats.closed=1\n"; !strings.HasSuffix(out.String(), " "+want) {
		t.Errorf("logged %q, want %q", out.String(), want)
	}
	if all := (oncecache.Stats{11, 12, 13, 1, 2, 3, 4, 14, 5, 6, 7, 8, 9, 10, true}).LogValue().String(); all != "[hits=11 misses=12 joined=13 created=1 failed=2 panicked=3 timed_out=4 renewals=14 evicted=5 idle=6 expired=7 closed=8 create_time=9ns weight=10]" {
		t.Error(all)
	}
}

// A loop over creations may end at any of them, those of Refresh too.
func TestInFlightEndsWithItsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		end := make(chan struct{})
		hang := func(context.Context, int) (int, error) { <-end; return 0, nil }
		for k := 1; k <= 3; k++ {
			go c.GetOrCreateContext(t.Context(), k, hang)
			c.Set(-k, 0)
			go c.Refresh(t.Context(), -k, anew(hang))
		}
		synctest.Wait()
		all := 0
		for range c.InFlight() {
			all++
		}
		for n := range all {
			seen := 0
			for range c.InFlight() {
				if seen++; seen > n {
					break
				}
			}
			if seen != n+1 {
				t.Errorf("%d seen, want %d", seen, n+1)
			}
		}
		if all != 6 {
			t.Errorf("%d creations, want 6", all)
		}
		close(end)
	})
}
