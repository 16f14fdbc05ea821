package peers

import (
	"fmt"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/puzpuzpuz/xsync/v3"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/load"
)

// Breakers that open if half of at least twenty calls in ten seconds fail.
const (
	windowLength = 10 * time.Second
	windowRate   = 0.5
	windowCalls  = 20
)

// newGobreakerRolling rolls in ten buckets, and decides after a failure.
func newGobreakerRolling() *gobreaker.TwoStepCircuitBreaker[int] {
	return gobreaker.NewTwoStepCircuitBreaker[int](gobreaker.Settings{
		Interval: windowLength, BucketPeriod: windowLength / 10, Timeout: openTimeout,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= windowCalls && float64(c.TotalFailures) >= windowRate*float64(c.Requests)
		},
	})
}

// newFailsafeRolling rolls in ten buckets, and decides after every call.
func newFailsafeRolling() circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().
		WithFailureRateThreshold(windowRate, windowCalls, windowLength).
		WithSuccessThreshold(1).
		WithDelay(openTimeout).
		Build()
}

// newLatchfreeRolling rolls in sixteen buckets, and decides after a failure.
func newLatchfreeRolling() *atomicbreaker.Breaker {
	return atomicbreaker.MustNew(atomicbreaker.Config{
		Policy: atomicbreaker.FailureRate(windowRate, windowCalls, windowLength), OpenTimeout: openTimeout,
	})
}

var rolling = []struct {
	impl string
	make func() call
}{
	{"gobreaker", func() call { return gobreakerCall(newGobreakerRolling()) }},
	{"failsafe", func() call { return failsafeCall(newFailsafeRolling()) }},
	{"latchfree", func() call { return latchfreeCall(newLatchfreeRolling()) }},
}

// BenchmarkBreakerWindow makes calls through one breaker that watches the rate
// of failures, which never is high enough.
func BenchmarkBreakerWindow(b *testing.B) {
	for _, failures := range []int{0, 1} {
		streams := load.Uniform(1, failures)
		for _, impl := range rolling {
			b.Run(fmt.Sprintf("failures=%d/impl=%s", failures, impl.impl), func(b *testing.B) {
				call := impl.make()
				for range windowCalls {
					call(false)
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						if _, fail := stream.Next(); !call(fail) {
							b.Error("a call was rejected")
						}
					}
				})
			})
		}
	}
}

// They open at the same call, and only then.
func TestRollingBreakersOpen(t *testing.T) {
	for _, impl := range rolling {
		t.Run(impl.impl, func(t *testing.T) {
			call := impl.make()
			for range windowCalls/2 + 1 {
				require.True(t, call(false))
			}
			for range windowCalls / 2 {
				require.True(t, call(true), "ten of twenty-one have failed")
			}
			require.True(t, call(true), "and this one is the eleventh of twenty-two")
			assert.False(t, call(true))
		})
	}
}

// BenchmarkBreakerGroupFloor compares a healthy call for one of many names with
// the least that a breaker for each key can cost: finding the key in a map,
// and doing nothing with it.
func BenchmarkBreakerGroupFloor(b *testing.B) {
	const keys = 1000
	names, streams := load.Names(keys), load.Uniform(keys, 0)
	found := xsync.NewMapOf[string, *int]()
	for i, name := range names {
		found.Store(name, &i)
	}
	for _, open := range []bool{false, true} {
		b.Run(fmt.Sprintf("open=%v/impl=xsync3", open), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, _ := stream.Next()
					if _, ok := found.Load(names[key]); !ok {
						b.Error("a name is missing")
					}
				}
			})
		})
		g := newLatchfreeGroup(1)
		if open {
			g.RecordFailure("another") // so that keys have to be looked for
		}
		b.Run(fmt.Sprintf("open=%v/impl=latchfree", open), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, _ := stream.Next()
					permit, err := g.Allow(names[key])
					if err != nil {
						b.Error(err)
					}
					permit.Success()
				}
			})
		})
	}
}
