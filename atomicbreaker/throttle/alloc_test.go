//go:build !modelcheck

package throttle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// No call allocates, be it accepted, rejected, or the first of an interval.
func TestAllocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := throttle.MustNew(throttle.Config{MinRequests: 1})
		th.Draw(always)
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
		wantAllocations("a call that fails", func() { th.Do(ctx, fn) })
		time.Sleep(th.Interval())
		wantAllocations("a rejection", func() {
			if th.Do(ctx, fn) == nil {
				t.Error("admitted")
			}
		})
		th, fails = throttle.MustNew(throttle.Config{}), false
		wantAllocations("a call that is accepted", func() { th.Do(ctx, fn) })
		wantAllocations("Snapshot", func() { th.Snapshot() })
		wantAllocations("the first call of an interval", func() {
			time.Sleep(th.Interval())
			th.Do(ctx, fn)
		})
	})
}
