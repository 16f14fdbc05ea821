//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// No call allocates, be it accepted, rejected, or the first of an interval.
func TestThrottleAllocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := ab.MustNewThrottle(ab.ThrottleConfig{MinRequests: 1})
		throttle.Draw(always)
		ctx, fails := context.Background(), true
		fn := func(context.Context) error {
			if fails {
				return errBoom
			}
			return nil
		}
		wantAllocations := func(what string, f func()) {
			t.Helper()
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%s allocates %v times", what, n)
			}
		}
		wantAllocations("a call that fails", func() { throttle.Do(ctx, fn) })
		time.Sleep(throttle.Interval())
		wantAllocations("a rejection", func() {
			if throttle.Do(ctx, fn) == nil {
				t.Error("admitted")
			}
		})
		throttle, fails = ab.MustNewThrottle(ab.ThrottleConfig{}), false
		wantAllocations("a call that is accepted", func() { throttle.Do(ctx, fn) })
		wantAllocations("Snapshot", func() { throttle.Snapshot() })
		wantAllocations("the first call of an interval", func() {
			time.Sleep(throttle.Interval())
			throttle.Do(ctx, fn)
		})
	})
}
