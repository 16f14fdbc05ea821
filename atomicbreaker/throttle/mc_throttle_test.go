//go:build modelcheck

package throttle

import (
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// rejecting is a throttle that rejects at every probability but zero, whose
// intervals take a second, after some requests that were not accepted.
func rejecting(requests int) *Throttle {
	t := MustNew(Config{Window: 15 * intervalsPerTick * time.Second, MinRequests: 2})
	t.settings().draw = func() uint32 { return 0 }
	for range requests {
		t.Allow()
	}
	return t
}

// Whoever comes to a zero throttle first, all count in the same one.
func TestZeroThrottleInEveryOrder(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Allow ∥ Allow, Success ∥ Snapshot"}, func(m *mc.M) {
		throttle := new(Throttle)
		m.Go(func() { throttle.Allow() })
		m.Go(func() {
			throttle.Allow()
			throttle.Success()
		})
		m.Go(func() {
			if s := throttle.Snapshot(); s.Requests > 2 || s.Accepts > 1 {
				m.Failf("%+v meanwhile", s)
			}
		})
		m.Final(func() {
			if s := throttle.Snapshot(); s.Requests != 2 || s.Accepts != 1 {
				m.Failf("%+v", s)
			}
		})
	})
}

// However callers overlap who find that the odds are old, each decides by
// counts that include a caller of this interval at least; and whoever published
// what, the next interval has odds of its own.
func TestIntervalsInEveryOrder(t *testing.T) {
	t.Run("two callers", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Allow ∥ Allow"}, func(m *mc.M) {
			throttle := rejecting(1)
			m.Advance(time.Second)
			admitted := make([]bool, 2)
			for i := range admitted {
				m.Go(func() { admitted[i] = throttle.Allow() == nil })
			}
			m.Final(func() {
				if admitted[0] || admitted[1] {
					m.Failf("%v: two and three requests, none accepted", admitted)
				}
				if s := throttle.Snapshot(); s.Requests != 3 {
					m.Failf("%+v", s)
				}
			})
		})
	})
	t.Run("the interval ends", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Allow ∥ Success, advance by 1 s, Allow"}, func(m *mc.M) {
			throttle := rejecting(1)
			m.Advance(time.Second)
			m.Go(func() { throttle.Allow() })
			m.Go(func() {
				throttle.Success()
				m.Advance(time.Second)
				throttle.Allow()
			})
			m.Final(func() {
				m.Advance(time.Second)
				throttle.Success()
				err := throttle.Allow()
				if s := throttle.Snapshot(); err != nil || s.Requests != 4 || s.Accepts != 2 {
					m.Failf("%v with %+v", err, s)
				}
				if o := oddsOf(throttle.odds.Load()); o != (odds{interval: 3}) {
					m.Failf("%+v in the end", o)
				}
			})
		})
	})
}

// What a call costs: two changes of words of its processor's own.
func TestCosts(t *testing.T) {
	fresh := func(rejects uint32, op func(*Throttle)) func() func(int) {
		return func() func(int) {
			throttle := MustNew(Config{Window: 24 * time.Hour}) // the first interval lasts 6 minutes
			throttle.settings().draw = func() uint32 { return 0 }
			throttle.odds.Store(odds{0, rejects}.word())
			return func(int) { op(throttle) }
		}
	}
	accepted := func(t *Throttle) {
		if t.Allow() == nil {
			t.Success()
		}
	}
	mc.CheckCost(t, "Throttle: a call that is accepted", fresh(0, accepted), mc.Cost{Loads: 5, RMWs: 2, Clock: 2}, 0)
	mc.CheckCost(t, "Throttle: a call that is not accepted", fresh(0, func(t *Throttle) { t.Allow() }), mc.Cost{Loads: 3, RMWs: 1, Clock: 1}, 0)
	mc.CheckCost(t, "Throttle: a call that is rejected", fresh(math.MaxUint32, accepted), mc.Cost{Loads: 3, RMWs: 1, Clock: 1}, 0)

	// What is rare sums up all stripes.
	snapshot := fresh(0, func(t *Throttle) { t.Snapshot() })()
	if cost, want := mc.Measure(func() { snapshot(0) }), (mc.Cost{Loads: 1 + atomics.Stripes()*ring.Buckets, Clock: 1}); cost != want {
		t.Errorf("Snapshot costs %v, want %v", cost, want)
	}
	cost := mc.Measure(func() {
		throttle := MustNew(Config{Window: 24 * time.Hour})
		throttle.odds.Store(odds{interval: 1}.word())
		throttle.Allow()
	})
	if want := (mc.Cost{Loads: 3 + 64*ring.Buckets, Stores: 2, RMWs: 2, Clock: 2}); cost != want {
		t.Errorf("New and the first call of an interval cost %v, want %v", cost, want)
	}
}
