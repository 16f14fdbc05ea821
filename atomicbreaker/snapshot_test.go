//go:build !modelcheck

package atomicbreaker

import (
	"testing"
	"time"
)

// A reader who was stopped finds another open word than before, which may be
// newer than the clock that he has read, or over by it.
func TestOpenOver(t *testing.T) {
	const lap = (untilMask + 1) * openTick // after which ticks come again
	for _, now := range []time.Duration{0, time.Second, lap - time.Second, lap, 3*lap + time.Minute} {
		s := MustNew(Config{MaxOpenTimeout: 365 * 24 * time.Hour}).core.settings()
		for _, d := range []time.Duration{openTick, time.Second, s.maxOpen} {
			for _, written := range []time.Duration{now, now + time.Second} {
				w := word(0).enter(open).withStreak(1) | word(s.until(d, written))
				if w.openOver(now) || w.openOver(written) || !w.openOver(written+d) || !w.openOver(written+d+24*time.Hour) {
					t.Errorf("opened at %v for %v", written, d)
				}
			}
		}
		if (word(0).enter(open).withStreak(1) | word(s.until(latched, now))).openOver(now + 24*time.Hour) {
			t.Errorf("over, though it never ends")
		}
	}
}
