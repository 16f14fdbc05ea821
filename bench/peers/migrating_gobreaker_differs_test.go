package peers

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// gobreakerDifferences are of settings that FromGobreaker has made.
var gobreakerDifferences = []row{
	{"max-requests-caps-all", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{MaxRequests: 3, ReadyToTrip: onFailure})
		p.admits(1, errCall)
		p.opensFor(time.Minute)
		p.admits(2, nil)
		p.start()
		// Three were let through there. Here one is in flight, and two more may be.
		p.peer.rejects(1)
		p.ours.start()
		p.ours.start()
		p.ours.rejects(1)
		p.is(isHalfOpen)
	}},
	{"window-rolls", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{Interval: time.Minute, ReadyToTrip: total(4)})
		pass(59 * time.Second)
		p.admits(3, errCall)
		pass(2 * time.Second) // the interval is over, and all is forgotten
		p.admits(1, errCall)
		p.peer.is(isClosed)
		p.ours.is(isOpen)
	}},
	{"long-call", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{Interval: time.Minute, ReadyToTrip: onFailure})
		done := p.start()
		pass(61 * time.Second)
		done(errCall)
		p.peer.is(isClosed)
		p.ours.is(isOpen)
	}},
	{"requests", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{
			Interval: time.Minute, ReadyToTrip: share(0.5, 2),
			IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		})
		p.start() // in flight
		p.admits(1, errCall)
		p.peer.is(isOpen)
		p.ours.is(isClosed) // one call has ended

		p = likeGobreaker(t, gobreaker.Settings{
			Interval: time.Minute, ReadyToTrip: share(0.5, 2),
			IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		})
		p.admits(1, context.Canceled) // excluded
		p.admits(1, errCall)
		p.peer.is(isOpen)
		p.ours.is(isClosed)
	}},
	{"state-is-a-read", func(t *testing.T) {
		told := map[string]int{}
		st := gobreaker.Settings{ReadyToTrip: onFailure}
		st.OnStateChange = func(string, gobreaker.State, gobreaker.State) { told["gobreaker"]++ }
		p := besideGobreaker(t, st, atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), OnStateChange: func(atomicbreaker.Event) { told["latchfree"]++ },
		})
		p.admits(1, errCall)
		pass(time.Minute + 1)
		p.is(isHalfOpen)
		assert.Equal(t, map[string]int{"gobreaker": 2, "latchfree": 1}, told)
		p.start()
		assert.Equal(t, map[string]int{"gobreaker": 2, "latchfree": 2}, told)
	}},
	{"listener-may-ask", func(t *testing.T) {
		asked := make(chan struct{})
		st := gobreaker.Settings{ReadyToTrip: onFailure}
		var peer *gobreaker.TwoStepCircuitBreaker[int]
		st.OnStateChange = func(string, gobreaker.State, gobreaker.State) {
			go func() { peer.State(); close(asked) }()
			for range 1000 {
				runtime.Gosched()
			}
			select {
			case <-asked:
				t.Error("gobreaker's State does not wait for the listener any more")
			default:
			}
		}
		peer = gobreaker.NewTwoStepCircuitBreaker[int](st)
		gobreakerSide(t, peer).admits(1, errCall)
		<-asked

		var ours *atomicbreaker.Breaker
		var seen atomicbreaker.State
		ours = atomicbreaker.MustNew(atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), OnStateChange: func(atomicbreaker.Event) { seen = ours.State() },
		})
		breakerSide(t, ours).admits(1, errCall)
		assert.Equal(t, atomicbreaker.Open, seen)
	}},
	{"late", func(t *testing.T) {
		b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
		permit, err := b.Allow()
		require.NoError(t, err)
		breakerSide(t, b).admits(1, errCall)
		assert.Equal(t, atomicbreaker.Late, permit.Done(errCall))
		p := likeGobreaker(t, gobreaker.Settings{ReadyToTrip: onFailure})
		done := p.start()
		p.admits(1, errCall)
		p.opensFor(time.Minute)
		probe := p.start()
		done(errCall) // of before: it does not open them again
		p.is(isHalfOpen)
		probe(nil)
		p.is(isClosed)
	}},
	{"timeout-instant", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{Timeout: time.Minute, ReadyToTrip: onFailure})
		p.admits(1, errCall)
		pass(time.Minute)
		p.peer.rejects(1)
		p.ours.start()

		p = likeGobreaker(t, gobreaker.Settings{Timeout: 1200 * time.Microsecond, ReadyToTrip: onFailure})
		p.admits(1, errCall)
		pass(1100 * time.Microsecond)
		p.peer.rejects(1)
		p.ours.start()
	}},
	{"map-forgets", func(t *testing.T) {
		p := pair{
			gobreakerSide(t, gobreaker.NewTwoStepCircuitBreaker[int](gobreaker.Settings{})),
			groupSide(t, atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
				Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(6)},
			}), "db-1"),
		}
		p.admits(5, errCall)
		pass(2 * time.Hour) // ForgetAfter is one
		p.ours.is(isClosed)
		assert.NotPanics(t, func() { p.admits(1, errCall) })
		p.peer.is(isOpen)
	}},
	{"map-windows", func(t *testing.T) {
		st := gobreaker.Settings{Interval: time.Minute, ReadyToTrip: share(0.5, 10)}
		p := pair{
			gobreakerSide(t, gobreaker.NewTwoStepCircuitBreaker[int](st)),
			groupSide(t, atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
				Default: atomicbreaker.Config{Policy: atomicbreaker.FailureRate(0.5, 10, time.Minute)},
			}), "db-1"),
		}
		p.admits(20, nil) // a healthy key has no window
		p.admits(10, errCall)
		p.peer.is(isClosed)
		p.ours.is(isOpen)
	}},
}
