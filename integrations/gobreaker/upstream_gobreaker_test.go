// This file has the tests of gobreaker_test.go of github.com/sony/gobreaker/v2 v2.4.0.
// Adapted are:
//   - Tests run in synctest bubbles, and pseudoSleep sleeps there. It shifted private
//     times. In a bubble no time passes beside that.
//   - Private fields are those of core and rolling here, and expiresNever is what
//     expiry.IsZero() was. What a breaker does with OnStateChange is checked by the
//     other tests only, since it is no field.
//   - Other lines say "adapted".
//
// The license of these tests:
//
// The MIT License (MIT)
//
// Copyright 2015 Sony Corporation
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in
// all copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
// THE SOFTWARE.

package gobreaker

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

var (
	errFailed   = errors.New("failed")
	errExcluded = errors.New("excluded")
)

type StateChange struct {
	name string
	from State
	to   State
}

func pseudoSleep(_ *CircuitBreaker[bool], period time.Duration) { time.Sleep(period) }

func succeed(cb *CircuitBreaker[bool]) error {
	_, err := cb.Execute(func() (bool, error) { return true, nil })
	return err
}

func succeedLater(cb *CircuitBreaker[bool], delay time.Duration) <-chan error {
	ch := make(chan error)
	go func() {
		_, err := cb.Execute(func() (bool, error) {
			time.Sleep(delay)
			return true, nil
		})
		ch <- err
	}()
	return ch
}

func fail(cb *CircuitBreaker[bool]) error {
	_, err := cb.Execute(func() (bool, error) { return false, errFailed })
	if errors.Is(err, errFailed) {
		return nil
	}
	return err
}

func exclude(cb *CircuitBreaker[bool]) error {
	_, err := cb.Execute(func() (bool, error) { return false, errExcluded })
	if errors.Is(err, errExcluded) {
		return nil
	}
	return err
}

func causePanic(cb *CircuitBreaker[bool]) error {
	_, err := cb.Execute(func() (bool, error) { panic("oops") })
	return err
}

func newCustom(stateChange *StateChange) *CircuitBreaker[bool] {
	var customSt Settings
	customSt.Name = "cb"
	customSt.MaxRequests = 3
	customSt.Interval = time.Duration(30) * time.Second
	customSt.Timeout = time.Duration(90) * time.Second
	customSt.ReadyToTrip = func(counts Counts) bool {
		numReqs := counts.Requests - counts.TotalExclusions // adapted: the method is not exported
		failureRatio := float64(counts.TotalFailures) / float64(numReqs)
		return numReqs >= 3 && failureRatio >= 0.6
	}
	customSt.IsExcluded = func(err error) bool {
		return errors.Is(err, errExcluded)
	}
	if stateChange != nil {
		customSt.OnStateChange = func(name string, from State, to State) {
			*stateChange = StateChange{name, from, to}
		}
	}
	return NewCircuitBreaker[bool](customSt)
}

func newRollingWindow(stateChange *StateChange) *CircuitBreaker[bool] {
	var rollingWindowSt Settings
	rollingWindowSt.Name = "rw"
	rollingWindowSt.MaxRequests = 3
	rollingWindowSt.Interval = time.Duration(30) * time.Second
	rollingWindowSt.BucketPeriod = time.Duration(3) * time.Second
	rollingWindowSt.Timeout = time.Duration(90) * time.Second
	rollingWindowSt.ReadyToTrip = func(counts Counts) bool {
		numReqs := counts.Requests - counts.TotalExclusions // adapted: the method is not exported
		failureRatio := float64(counts.TotalFailures) / float64(numReqs)
		return numReqs >= 3 && failureRatio >= 0.6
	}
	rollingWindowSt.IsExcluded = func(err error) bool {
		return errors.Is(err, errExcluded)
	}
	if stateChange != nil {
		rollingWindowSt.OnStateChange = func(name string, from State, to State) {
			*stateChange = StateChange{name, from, to}
		}
	}
	return NewCircuitBreaker[bool](rollingWindowSt)
}

func newNegativeDurationCB() *CircuitBreaker[bool] {
	var negativeSt Settings
	negativeSt.Name = "ncb"
	negativeSt.Interval = time.Duration(-30) * time.Second
	negativeSt.Timeout = time.Duration(-90) * time.Second
	return NewCircuitBreaker[bool](negativeSt)
}

func TestStateConstants(t *testing.T) {
	assert.Equal(t, State(0), StateClosed)
	assert.Equal(t, State(1), StateHalfOpen)
	assert.Equal(t, State(2), StateOpen)

	assert.Equal(t, StateClosed.String(), "closed")
	assert.Equal(t, StateHalfOpen.String(), "half-open")
	assert.Equal(t, StateOpen.String(), "open")
	assert.Equal(t, State(100).String(), "unknown state: 100")
}

func TestNewCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defaultCB := NewCircuitBreaker[bool](Settings{})
		assert.Equal(t, "", defaultCB.core.name)
		assert.Equal(t, int64(1), defaultCB.core.maxRequests)
		assert.Equal(t, time.Duration(0), defaultCB.core.interval)
		assert.Equal(t, time.Duration(60)*time.Second, defaultCB.core.timeout)
		assert.NotNil(t, defaultCB.core.readyToTrip)
		assert.Equal(t, StateClosed, defaultCB.core.current.Load().state)
		assert.Equal(t, Counts{}, defaultCB.Counts())
		assert.True(t, expiresNever(&defaultCB.core))

		var stateChange StateChange
		customCB := newCustom(&stateChange)
		assert.Equal(t, "cb", customCB.core.name)
		assert.Equal(t, int64(3), customCB.core.maxRequests)
		assert.Equal(t, time.Duration(30)*time.Second, customCB.core.interval)
		assert.Equal(t, time.Duration(90)*time.Second, customCB.core.timeout)
		assert.NotNil(t, customCB.core.readyToTrip)
		assert.Equal(t, StateClosed, customCB.core.current.Load().state)
		assert.Equal(t, Counts{}, customCB.Counts())
		assert.False(t, expiresNever(&customCB.core))

		rollingWindowCB := newRollingWindow(nil)
		assert.Equal(t, "rw", rollingWindowCB.core.name)
		assert.Equal(t, int64(3), rollingWindowCB.core.maxRequests)
		assert.Equal(t, time.Duration(30)*time.Second, rollingWindowCB.core.interval)
		assert.Equal(t, 10, len(rollingOf(rollingWindowCB).buckets))
		assert.Equal(t, time.Duration(90)*time.Second, rollingWindowCB.core.timeout)
		assert.NotNil(t, rollingWindowCB.core.readyToTrip)
		assert.Equal(t, StateClosed, rollingWindowCB.core.current.Load().state)
		assert.Equal(t, Counts{}, rollingWindowCB.Counts())
		assert.True(t, expiresNever(&rollingWindowCB.core))

		negativeDurationCB := newNegativeDurationCB()
		assert.Equal(t, "ncb", negativeDurationCB.core.name)
		assert.Equal(t, int64(1), negativeDurationCB.core.maxRequests)
		assert.Equal(t, time.Duration(0)*time.Second, negativeDurationCB.core.interval)
		assert.Equal(t, time.Duration(60)*time.Second, negativeDurationCB.core.timeout)
		assert.NotNil(t, negativeDurationCB.core.readyToTrip)
		assert.Equal(t, StateClosed, negativeDurationCB.core.current.Load().state)
		assert.Equal(t, Counts{}, negativeDurationCB.Counts())
		assert.True(t, expiresNever(&negativeDurationCB.core))
	})
}

func TestDefaultCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defaultCB := NewCircuitBreaker[bool](Settings{})
		assert.Equal(t, "", defaultCB.Name())

		for i := 0; i < 5; i++ {
			assert.Nil(t, fail(defaultCB))
		}
		assert.Equal(t, StateClosed, defaultCB.State())
		assert.Equal(t, Counts{Requests: 5, TotalFailures: 5, ConsecutiveFailures: 5}, defaultCB.Counts())

		assert.Nil(t, succeed(defaultCB))
		assert.Equal(t, StateClosed, defaultCB.State())
		assert.Equal(t, Counts{Requests: 6, TotalSuccesses: 1, TotalFailures: 5, ConsecutiveSuccesses: 1}, defaultCB.Counts())

		assert.Nil(t, fail(defaultCB))
		assert.Equal(t, StateClosed, defaultCB.State())
		assert.Equal(t, Counts{Requests: 7, TotalSuccesses: 1, TotalFailures: 6, ConsecutiveFailures: 1}, defaultCB.Counts())

		// StateClosed to StateOpen
		for i := 0; i < 5; i++ {
			assert.Nil(t, fail(defaultCB)) // 6 consecutive failures
		}
		assert.Equal(t, StateOpen, defaultCB.State())
		assert.Equal(t, Counts{}, defaultCB.Counts())
		assert.False(t, expiresNever(&defaultCB.core))

		assert.Error(t, succeed(defaultCB))
		assert.Error(t, fail(defaultCB))
		assert.Equal(t, Counts{}, defaultCB.Counts())

		pseudoSleep(defaultCB, defaultCB.core.timeout-time.Millisecond)
		assert.Equal(t, StateOpen, defaultCB.State())

		// StateOpen to StateHalfOpen
		pseudoSleep(defaultCB, time.Second) // over Timeout
		assert.Equal(t, StateHalfOpen, defaultCB.State())
		assert.True(t, expiresNever(&defaultCB.core))

		// StateHalfOpen to StateOpen
		assert.Nil(t, fail(defaultCB))
		assert.Equal(t, StateOpen, defaultCB.State())
		assert.Equal(t, Counts{}, defaultCB.Counts())
		assert.False(t, expiresNever(&defaultCB.core))

		// StateOpen to StateHalfOpen
		pseudoSleep(defaultCB, defaultCB.core.timeout+time.Nanosecond)
		assert.Equal(t, StateHalfOpen, defaultCB.State())
		assert.True(t, expiresNever(&defaultCB.core))

		// StateHalfOpen to StateClosed
		assert.Nil(t, succeed(defaultCB))
		assert.Equal(t, StateClosed, defaultCB.State())
		assert.Equal(t, Counts{}, defaultCB.Counts())
		assert.True(t, expiresNever(&defaultCB.core))
	})
}

func TestCustomCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stateChange StateChange
		customCB := newCustom(&stateChange)
		assert.Equal(t, "cb", customCB.Name())

		for i := 0; i < 5; i++ {
			assert.Nil(t, succeed(customCB))
			assert.Nil(t, fail(customCB))
			assert.Nil(t, exclude(customCB))
		}
		assert.Equal(t, StateClosed, customCB.State())
		assert.Equal(t, Counts{Requests: 15, TotalSuccesses: 5, TotalFailures: 5, TotalExclusions: 5, ConsecutiveFailures: 1}, customCB.Counts())

		pseudoSleep(customCB, customCB.core.interval-time.Millisecond)
		assert.Nil(t, succeed(customCB))
		assert.Equal(t, StateClosed, customCB.State())
		assert.Equal(t, Counts{Requests: 16, TotalSuccesses: 6, TotalFailures: 5, TotalExclusions: 5, ConsecutiveSuccesses: 1}, customCB.Counts())

		pseudoSleep(customCB, time.Second) // over Interval
		assert.Nil(t, fail(customCB))
		assert.Equal(t, StateClosed, customCB.State())
		assert.Equal(t, Counts{Requests: 1, TotalFailures: 1, ConsecutiveFailures: 1}, customCB.Counts())

		// StateClosed to StateOpen
		assert.Nil(t, succeed(customCB))
		assert.Nil(t, fail(customCB)) // failure ratio: 2/3 >= 0.6
		assert.Equal(t, StateOpen, customCB.State())
		assert.Equal(t, Counts{}, customCB.Counts())
		assert.False(t, expiresNever(&customCB.core))
		assert.Equal(t, StateChange{"cb", StateClosed, StateOpen}, stateChange)

		// StateOpen to StateHalfOpen
		pseudoSleep(customCB, customCB.core.timeout+time.Nanosecond)
		assert.Equal(t, StateHalfOpen, customCB.State())
		assert.True(t, expiresNever(&customCB.core))
		assert.Equal(t, StateChange{"cb", StateOpen, StateHalfOpen}, stateChange)

		// Excluded requests are neutral in Half-Open state.
		// They do not affect breaker counts or state transitions.
		// The condition to stay within MaxRequests should be evaluated as:
		// cb.counts.Requests - cb.counts.TotalExclusions < cb.maxRequests
		// This ensures excluded requests do not cause premature errors.
		assert.Nil(t, exclude(customCB))
		assert.Nil(t, exclude(customCB))
		assert.Nil(t, exclude(customCB))
		assert.Nil(t, exclude(customCB))
		assert.Equal(t, StateHalfOpen, customCB.State())

		// Transition: Half-Open → Open
		// In Half-Open, the first real failure immediately re-opens the breaker.
		assert.Nil(t, fail(customCB))
		assert.Equal(t, StateOpen, customCB.State())
		assert.Equal(t, Counts{}, customCB.Counts())
		assert.False(t, expiresNever(&customCB.core))
		assert.Equal(t, StateChange{"cb", StateHalfOpen, StateOpen}, stateChange)

		// Transition: Open → Half-Open (after timeout expires).
		pseudoSleep(customCB, customCB.core.timeout+time.Nanosecond)
		assert.Equal(t, StateHalfOpen, customCB.State())

		// Successes increment counters but do not
		// close the breaker until the MaxRequests threshold is satisfied.
		assert.Nil(t, succeed(customCB))
		assert.Nil(t, succeed(customCB))
		assert.Equal(t, StateHalfOpen, customCB.State())
		assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 2, ConsecutiveSuccesses: 2}, customCB.Counts())

		// StateHalfOpen to StateClosed
		ch := succeedLater(customCB, time.Duration(100)*time.Millisecond) // 3 consecutive successes
		time.Sleep(time.Duration(50) * time.Millisecond)
		assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, ConsecutiveSuccesses: 2}, customCB.Counts())
		assert.Error(t, succeed(customCB)) // over MaxRequests
		assert.Nil(t, <-ch)
		assert.Equal(t, StateClosed, customCB.State())
		assert.Equal(t, Counts{}, customCB.Counts())
		assert.False(t, expiresNever(&customCB.core))
		assert.Equal(t, StateChange{"cb", StateHalfOpen, StateClosed}, stateChange)
	})
}

func TestRollingWindowCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stateChange StateChange
		rollingCB := newRollingWindow(&stateChange)
		assert.Equal(t, "rw", rollingCB.Name())

		for i := 0; i < 5; i++ {
			assert.Nil(t, succeed(rollingCB))
			assert.Nil(t, fail(rollingCB))
			assert.Nil(t, exclude(rollingCB))
		}
		assert.Equal(t, StateClosed, rollingCB.State())
		assert.Equal(t, Counts{Requests: 15, TotalSuccesses: 5, TotalFailures: 5, TotalExclusions: 5, ConsecutiveFailures: 1}, rollingCB.Counts())
		assert.Equal(t, 10, len(rollingOf(rollingCB).buckets))
		assert.Equal(t, Counts{Requests: 15, TotalSuccesses: 5, TotalFailures: 5, TotalExclusions: 5, ConsecutiveFailures: 1}, rollingOf(rollingCB).bucketAt(0))

		pseudoSleep(rollingCB, time.Duration(3)*time.Second)
		assert.Nil(t, succeed(rollingCB))
		assert.Equal(t, StateClosed, rollingCB.State())
		assert.Equal(t, Counts{Requests: 16, TotalSuccesses: 6, TotalFailures: 5, TotalExclusions: 5, ConsecutiveSuccesses: 1}, rollingCB.Counts())
		assert.Equal(t, 10, len(rollingOf(rollingCB).buckets))
		// With circular buffer, previous bucket is at (current-1+len) % len
		assert.Equal(t, Counts{Requests: 15, TotalSuccesses: 5, TotalFailures: 5, TotalExclusions: 5, ConsecutiveFailures: 1}, rollingOf(rollingCB).bucketAt(-1))
		assert.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, rollingOf(rollingCB).bucketAt(0))

		pseudoSleep(rollingCB, time.Duration(2)*time.Second)
		assert.Nil(t, succeed(rollingCB))
		assert.Nil(t, exclude(rollingCB))
		assert.Equal(t, StateClosed, rollingCB.State())
		assert.Equal(t, 10, len(rollingOf(rollingCB).buckets))
		assert.Equal(t, Counts{Requests: 18, TotalSuccesses: 7, TotalFailures: 5, TotalExclusions: 6, ConsecutiveSuccesses: 2}, rollingCB.Counts())
		// Previous bucket index
		assert.Equal(t, Counts{Requests: 15, TotalSuccesses: 5, TotalFailures: 5, TotalExclusions: 5, ConsecutiveFailures: 1}, rollingOf(rollingCB).bucketAt(-1))
		assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, ConsecutiveSuccesses: 2, TotalExclusions: 1}, rollingOf(rollingCB).bucketAt(0))

		pseudoSleep(rollingCB, time.Duration(2)*time.Second)
		// Capture age before undetermined request
		beforeAge := rollingOf(rollingCB).age.Load()
		// Run an undetermined request
		assert.Nil(t, exclude(rollingCB))
		// Age should increase
		assert.Greater(t, rollingOf(rollingCB).age.Load(), beforeAge)
		// Next success should increment counts normally
		assert.Nil(t, succeed(rollingCB))
		assert.Equal(t, StateClosed, rollingCB.State())
		assert.Equal(t, Counts{Requests: 20, TotalSuccesses: 8, TotalFailures: 5, TotalExclusions: 7, ConsecutiveSuccesses: 3}, rollingCB.Counts())
		assert.Equal(t, 10, len(rollingOf(rollingCB).buckets))
		// Calculate indices for buckets relative to current
		assert.Equal(t, Counts{Requests: 15, TotalSuccesses: 5, TotalFailures: 5, TotalExclusions: 5, ConsecutiveFailures: 1}, rollingOf(rollingCB).bucketAt(-2))
		assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, ConsecutiveSuccesses: 2, TotalExclusions: 1}, rollingOf(rollingCB).bucketAt(-1))
		assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, ConsecutiveSuccesses: 1, TotalExclusions: 1}, rollingOf(rollingCB).bucketAt(0))

		pseudoSleep(rollingCB, time.Duration(2)*time.Second)
		assert.Nil(t, fail(rollingCB))
		assert.Equal(t, StateClosed, rollingCB.State())
		assert.Equal(t, Counts{Requests: 21, TotalSuccesses: 8, TotalFailures: 6, TotalExclusions: 7, ConsecutiveFailures: 1}, rollingCB.Counts())
		assert.Equal(t, 10, len(rollingOf(rollingCB).buckets))
		// Calculate indices for buckets relative to current
		assert.Equal(t, Counts{Requests: 15, TotalSuccesses: 5, TotalFailures: 5, TotalExclusions: 5, ConsecutiveFailures: 1}, rollingOf(rollingCB).bucketAt(-3))
		assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, ConsecutiveSuccesses: 2, TotalExclusions: 1}, rollingOf(rollingCB).bucketAt(-2))
		assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, ConsecutiveSuccesses: 1, TotalExclusions: 1}, rollingOf(rollingCB).bucketAt(-1))
		assert.Equal(t, Counts{Requests: 1, TotalFailures: 1, ConsecutiveFailures: 1}, rollingOf(rollingCB).bucketAt(0))

		// fill all the buckets
		for i := 0; i < 6; i++ {
			pseudoSleep(rollingCB, time.Duration(3)*time.Second)
			assert.Nil(t, succeed(rollingCB))
			assert.Nil(t, fail(rollingCB))
			assert.Equal(t, Counts{Requests: uint32(23 + 2*i), TotalSuccesses: uint32(9 + i), TotalFailures: uint32(7 + i), TotalExclusions: 7, ConsecutiveFailures: 1}, rollingCB.Counts())
		}

		assert.Equal(t, 10, len(rollingOf(rollingCB).buckets))

		// first bucket should be discarded
		pseudoSleep(rollingCB, time.Duration(3)*time.Second)
		assert.Nil(t, fail(rollingCB))
		assert.Equal(t, 10, len(rollingOf(rollingCB).buckets))
		assert.Equal(t, Counts{Requests: 19, TotalSuccesses: 9, TotalFailures: 8, TotalExclusions: 2, ConsecutiveFailures: 2}, rollingCB.Counts())

		for i := 0; i < 5; i++ {
			assert.Nil(t, fail(rollingCB))
			assert.Equal(t, Counts{Requests: uint32(20 + i), TotalSuccesses: 9, TotalFailures: uint32(9 + i), TotalExclusions: 2, ConsecutiveFailures: uint32(3 + i)}, rollingCB.Counts())
		}

		assert.Equal(t, StateClosed, rollingCB.State())

		assert.Nil(t, fail(rollingCB)) //failureRate = 14/23 > 0.6
		assert.Equal(t, StateOpen, rollingCB.State())
		assert.False(t, expiresNever(&rollingCB.core))
		assert.Equal(t, StateChange{"rw", StateClosed, StateOpen}, stateChange)

		// StateOpen to StateHalfOpen
		pseudoSleep(rollingCB, rollingCB.core.timeout+time.Nanosecond)
		assert.Equal(t, StateHalfOpen, rollingCB.State())
		assert.True(t, expiresNever(&rollingCB.core))
		assert.Equal(t, StateChange{"rw", StateOpen, StateHalfOpen}, stateChange)

		assert.Nil(t, succeed(rollingCB))
		assert.Nil(t, succeed(rollingCB))
		assert.Equal(t, StateHalfOpen, rollingCB.State())
		assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 2, ConsecutiveSuccesses: 2}, rollingCB.Counts())

		// StateHalfOpen to StateClosed
		ch := succeedLater(rollingCB, time.Duration(100)*time.Millisecond) // 3 consecutive successes
		time.Sleep(time.Duration(50) * time.Millisecond)
		assert.Equal(t, Counts{Requests: 3, TotalSuccesses: 2, ConsecutiveSuccesses: 2}, rollingCB.Counts())
		assert.Error(t, succeed(rollingCB)) // over MaxRequests
		assert.Nil(t, <-ch)
		assert.Equal(t, StateClosed, rollingCB.State())
		assert.Equal(t, Counts{}, rollingCB.Counts())
		assert.True(t, expiresNever(&rollingCB.core))
		assert.Equal(t, StateChange{"rw", StateHalfOpen, StateClosed}, stateChange)
	})
}

func TestPanicInRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defaultCB := NewCircuitBreaker[bool](Settings{})
		assert.Panics(t, func() { _ = causePanic(defaultCB) })
		assert.Equal(t, Counts{Requests: 1, TotalFailures: 1, ConsecutiveFailures: 1}, defaultCB.Counts())
	})
}

func TestGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		customCB := newCustom(nil)
		pseudoSleep(customCB, time.Duration(29)*time.Second)
		assert.Nil(t, succeed(customCB))
		ch := succeedLater(customCB, time.Duration(1500)*time.Millisecond)
		time.Sleep(time.Duration(500) * time.Millisecond)
		assert.Equal(t, Counts{Requests: 2, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, customCB.Counts())

		time.Sleep(time.Duration(500)*time.Millisecond + 1) // over Interval; adapted: + 1
		assert.Equal(t, StateClosed, customCB.State())
		assert.Equal(t, Counts{}, customCB.Counts())

		// the request from the previous generation has no effect on customCB.windowCounts.Counts
		assert.Nil(t, <-ch)
		assert.Equal(t, Counts{}, customCB.Counts())
	})
}

func TestCustomIsSuccessful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		isSuccessful := func(error) bool {
			return true
		}
		cb := NewCircuitBreaker[bool](Settings{IsSuccessful: isSuccessful})

		for i := 0; i < 5; i++ {
			assert.Nil(t, fail(cb))
		}
		assert.Equal(t, StateClosed, cb.State())
		assert.Equal(t, Counts{Requests: 5, TotalSuccesses: 5, ConsecutiveSuccesses: 5}, cb.Counts())

		cb.core.current.Store(cb.core.begin(StateClosed, 0)) // adapted: a generation begins with no counts

		cb.core.isSuccessful = func(err error) bool {
			return err == nil
		}

		for i := 0; i < 6; i++ {
			assert.Nil(t, fail(cb))
		}
		assert.Equal(t, StateOpen, cb.State())

	})
}

func TestCircuitBreakerInParallel(t *testing.T) {
	runtime.GOMAXPROCS(runtime.NumCPU())

	customCB := newCustom(nil)
	ch := make(chan error)

	var successCount, excludeCount atomic.Uint32

	const numReqs = 10000
	routine := func() {
		for i := 0; i < numReqs; i++ {
			var err error
			switch i % 2 {
			case 0:
				err = succeed(customCB)
				successCount.Add(1)
			case 1:
				err = exclude(customCB)
				excludeCount.Add(1)
			}

			ch <- err
		}
	}

	const numRoutines = 10
	for i := 0; i < numRoutines; i++ {
		go routine()
	}

	total := uint32(numReqs * numRoutines)
	for i := uint32(0); i < total; i++ {
		err := <-ch
		assert.Nil(t, err)
	}

	assert.Equal(t, Counts{Requests: total, TotalSuccesses: successCount.Load(), ConsecutiveSuccesses: successCount.Load(), TotalExclusions: excludeCount.Load()}, customCB.Counts())
}

func TestIsExcludedAndIsSuccessfulCombination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cb := NewCircuitBreaker[bool](Settings{
			IsExcluded: func(err error) bool {
				return errors.Is(err, errExcluded)
			},
			IsSuccessful: func(err error) bool {
				return err == nil
			},
		})

		// Case 1: excluded error -> should be undetermined (not counted)
		for i := 0; i < 3; i++ {
			assert.Nil(t, exclude(cb))
		}
		assert.Equal(t, Counts{Requests: 3, TotalExclusions: 3}, cb.Counts(), "excluded errors must not be counted as success or failure")

		// Case 2: nil error -> IsSuccessful says success
		for i := 0; i < 3; i++ {
			assert.Nil(t, succeed(cb))
		}
		assert.Equal(t, Counts{Requests: 6, TotalSuccesses: 3, ConsecutiveSuccesses: 3, TotalExclusions: 3}, cb.Counts(), "nil errors should be counted as success per IsSuccessful")

		// Case 3: not nil error -> IsSuccessful says failure
		for i := 0; i < 2; i++ {
			assert.Nil(t, fail(cb))
		}
		assert.Equal(t, Counts{Requests: 8, TotalSuccesses: 3, TotalFailures: 2, TotalExclusions: 3, ConsecutiveFailures: 2}, cb.Counts(), "errors should be counted as failures per IsSuccessful")
	})
}

func TestRollingWindowCircuitBreakerInParallel(t *testing.T) {
	rollingCB := newRollingWindow(nil)
	const numGoroutines = 12
	const numRequests = 100

	var wg sync.WaitGroup
	wg.Add(numGoroutines)

	for i := 0; i < numGoroutines; i++ {
		go func() {
			defer wg.Done()
			for j := 0; j < numRequests; j++ {
				switch j % 3 {
				case 0:
					assert.Nil(t, succeed(rollingCB))
				case 1:
					assert.Nil(t, fail(rollingCB))
				case 2:
					assert.Nil(t, exclude(rollingCB))
				}
			}
		}()
	}

	wg.Wait()
}
