package bench

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/locked"
)

// listenedBreaker is one implementation that tells its listener of changes.
type listenedBreaker struct {
	impl  string
	call  func(fail bool) (admitted bool)
	reset func()
	told  *atomic.Uint64 // changes that the listener was told of
}

// listenedBreakers lists what is compared. The listeners count.
func listenedBreakers() []listenedBreaker {
	var mutexTold, oursTold atomic.Uint64
	mutex := locked.NewListenedBreaker(
		locked.BreakerConfig{Threshold: 1, OpenTimeout: time.Hour, Probes: 1, CloseAfter: 1},
		func(_, _ atomicbreaker.State) { mutexTold.Add(1) })
	ours := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy: atomicbreaker.Consecutive(1), OpenTimeout: time.Hour,
		OnStateChange: func(atomicbreaker.Event) { oursTold.Add(1) },
	})
	return []listenedBreaker{
		{"mutex", lockedCalls("mutex", mutex).call, mutex.Reset, &mutexTold},
		{"latchfree", func(fail bool) bool {
			p, err := ours.Allow()
			if err != nil {
				return false
			}
			if fail {
				p.Failure()
			} else {
				p.Success()
			}
			return true
		}, ours.Reset, &oursTold},
	}
}

// BenchmarkBreakerListenedCall makes calls that succeed, through one breaker
// that has a listener.
func BenchmarkBreakerListenedCall(b *testing.B) {
	for _, c := range listenedBreakers() {
		b.Run("impl="+c.impl, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if !c.call(false) {
						b.Error("a call was rejected")
					}
				}
			})
			if c.told.Load() > 0 {
				b.Error("nothing has changed, and the listener was told of it")
			}
		})
	}
}

// BenchmarkBreakerListenedTrip makes one call after the other that opens a
// breaker, and closes it again. The listener is told of both.
func BenchmarkBreakerListenedTrip(b *testing.B) {
	for _, c := range listenedBreakers() {
		b.Run("impl="+c.impl, func(b *testing.B) {
			before, n := c.told.Load(), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				if !c.call(true) {
					b.Error("a call was rejected")
				}
				c.reset()
				n++
			}
			if told := c.told.Load() - before; told != 2*n {
				b.Errorf("the listener was told of %d of %d changes", told, 2*n)
			}
		})
	}
}
