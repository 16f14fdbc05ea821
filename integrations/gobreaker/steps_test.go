package gobreaker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// The tests here stop a caller between two steps and let others go on, by calling the
// steps one at a time.

// allSlots takes all slots of a half-open breaker that admits so many calls, and gives them
// back.
func allSlots(t *testing.T, b *TwoStepCircuitBreaker[int]) {
	t.Helper()
	var dones []func(error)
	for range maxSlots {
		done, err := b.Allow()
		require.NoError(t, err)
		dones = append(dones, done)
	}
	_, err := b.Allow()
	require.Equal(t, ErrTooManyRequests, err)
	for _, done := range dones {
		done(errSkip)
	}
}

func manyProbes() Settings {
	return Settings{MaxRequests: 40, ReadyToTrip: func(Counts) bool { return true }, IsExcluded: func(err error) bool { return err == errSkip }}
}

// TestCallerOfAnOldClosedGeneration has read that the breaker is closed, and asks when it is
// half-open, or closed again.
func TestCallerOfAnOldClosedGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTwoStepCircuitBreaker[int](manyProbes())
		old := b.core.current.Load()
		done, _ := b.Allow()
		done(errBad)
		var stale ticket
		require.False(t, b.core.admitClosed(&stale, old), "it is open")
		time.Sleep(time.Minute + 1)
		require.Equal(t, StateHalfOpen, b.State())
		require.False(t, b.core.admitClosed(&stale, old), "it is half-open")
		allSlots(t, b)
		for range 40 {
			done, _ := b.Allow()
			done(nil)
		}
		require.Equal(t, StateClosed, b.State())
		require.False(t, b.core.admitClosed(&stale, old), "it is another generation")
		require.Equal(t, Counts{}, b.Counts())
	})
}

// TestCallerOfAnOldHalfOpenGeneration has read that the breaker is half-open with a place,
// and asks when it is closed, or half-open again.
func TestCallerOfAnOldHalfOpenGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTwoStepCircuitBreaker[int](manyProbes())
		fail := func() {
			done, err := b.Allow()
			require.NoError(t, err)
			done(errBad)
			require.Equal(t, StateOpen, b.State())
		}
		fail()
		time.Sleep(time.Minute + 1)
		require.Equal(t, StateHalfOpen, b.State())
		old := b.core.current.Load()
		var stale ticket
		fail()
		require.Equal(t, ErrOpenState, b.core.admitProbe(&stale, old, 0))
		time.Sleep(time.Minute + 1)
		require.Equal(t, StateHalfOpen, b.State())
		require.Equal(t, errDecided, b.core.admitProbe(&stale, old, 0))
		allSlots(t, b)
		for range 40 {
			done, _ := b.Allow()
			done(nil)
		}
		require.Equal(t, StateClosed, b.State())
		require.Equal(t, errDecided, b.core.admitProbe(&stale, old, 0))
	})
}

// TestFullWhenTaken fills the last places between a caller's look and its turn.
func TestFullWhenTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := halfOpened(t, Settings{})
		c, g := &b.core, b.core.current.Load()
		require.False(t, g.probes.full(c, c.now()))
		_, err := b.Allow()
		require.NoError(t, err)
		require.Equal(t, ErrTooManyRequests, g.probes.take(c, c.now()))
		require.Equal(t, Counts{Requests: 1}, b.Counts())
	})
}

// TestAboutToClose looks at a breaker between its last success and its Reset.
func TestAboutToClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := halfOpened(t, Settings{})
		c, g := &b.core, b.core.current.Load()
		_, err := b.Allow()
		require.NoError(t, err)
		require.True(t, g.probes.end(c, success, c.now()))
		require.False(t, g.probes.end(c, failure, c.now()), "it was decided")
		require.Equal(t, StateHalfOpen, b.State())
		_, err = b.Allow()
		require.Equal(t, ErrTooManyRequests, err)
		require.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, b.Counts())
		c.breaker.Reset()
		// Its caller goes no further. Others do the rest.
		require.Equal(t, Counts{}, b.Counts())
		require.Equal(t, StateClosed, b.State())
		done, err := b.Allow()
		require.NoError(t, err)
		done(nil)
		require.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, b.Counts())
	})
}

// TestAboutToOpen stops the callers that open the breaker and make it half-open in between.
// A call after the end of Timeout waits for them, and one before that does not.
func TestAboutToOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTwoStepCircuitBreaker[int](Settings{})
		c := &b.core
		c.current.Store(c.begin(StateOpen, c.now()))
		_, err := b.Allow()
		require.Equal(t, ErrOpenState, err)
		require.Equal(t, StateOpen, b.State())
		time.Sleep(time.Minute + 1)
		admitted := make(chan error, 1)
		go func() { _, err := b.Allow(); admitted <- err }()
		settle()
		require.Empty(t, admitted)
		c.breaker.Trip(-1)
		require.NoError(t, <-admitted)

		b = NewTwoStepCircuitBreaker[int](Settings{})
		c = &b.core
		c.breaker.Trip(-1)
		c.current.Store(c.begin(StateHalfOpen, c.now()))
		go func() { _, err := b.Allow(); admitted <- err }()
		settle()
		require.Empty(t, admitted)
		require.Equal(t, atomicbreaker.Open, c.breaker.State())
		c.breaker.HalfOpen()
		require.NoError(t, <-admitted)
	})
}

// TestSuccessesAfterAFailure has two successes see the failure before either is counted.
func TestSuccessesAfterAFailure(t *testing.T) {
	s := newStriped()
	s.fail()
	s.succeedAfterFailure()
	s.succeedAfterFailure()
	require.Equal(t, Counts{TotalSuccesses: 2, TotalFailures: 1, ConsecutiveSuccesses: 2}, s.counts())
}
