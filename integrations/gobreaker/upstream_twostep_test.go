// This file has the tests of twostep_gobreaker_test.go of github.com/sony/gobreaker/v2
// v2.4.0. Adapted are:
//   - The test runs in a synctest bubble, and sleeps where it shifted private times.
//   - Private fields are those of core here, and expiresNever is what expiry.IsZero() was.
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
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func succeed2Step(cb *TwoStepCircuitBreaker[bool]) error {
	done, err := cb.Allow()
	if err != nil {
		return err
	}

	done(nil)
	return nil
}

func fail2Step(cb *TwoStepCircuitBreaker[bool]) error {
	done, err := cb.Allow()
	if err != nil {
		return err
	}

	done(errFailed)
	return nil
}

func exclude2step(cb *TwoStepCircuitBreaker[bool]) error {
	done, err := cb.Allow()
	if err != nil {
		return err
	}

	done(errExcluded)
	return nil
}

func exclude2StepWithDelay(cb *TwoStepCircuitBreaker[bool]) (chan struct{}, error) {
	done, err := cb.Allow()
	if err != nil {
		return nil, err
	}

	finished := make(chan struct{})
	go func() {
		time.Sleep(100 * time.Millisecond)
		done(errExcluded)
		close(finished)
	}()

	return finished, nil
}

func TestTwoStepCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tscb := NewTwoStepCircuitBreaker[bool](
			Settings{
				Name:        "tscb",
				MaxRequests: 2,
				IsExcluded: func(err error) bool {
					return errors.Is(err, errExcluded)
				},
			},
		)
		assert.Equal(t, "tscb", tscb.Name())

		for i := 0; i < 5; i++ {
			assert.Nil(t, fail2Step(tscb))
		}

		assert.Equal(t, StateClosed, tscb.State())
		assert.Equal(t, Counts{Requests: 5, TotalFailures: 5, ConsecutiveFailures: 5}, tscb.Counts())

		assert.Nil(t, succeed2Step(tscb))
		assert.Equal(t, StateClosed, tscb.State())
		assert.Equal(t, Counts{Requests: 6, TotalSuccesses: 1, TotalFailures: 5, ConsecutiveSuccesses: 1}, tscb.Counts())

		assert.Nil(t, fail2Step(tscb))
		assert.Equal(t, StateClosed, tscb.State())
		assert.Equal(t, Counts{Requests: 7, TotalSuccesses: 1, TotalFailures: 6, ConsecutiveFailures: 1}, tscb.Counts())

		// StateClosed to StateOpen
		for i := 0; i < 5; i++ {
			assert.Nil(t, fail2Step(tscb)) // 6 consecutive failures
		}
		assert.Equal(t, StateOpen, tscb.State())
		assert.Equal(t, Counts{}, tscb.Counts())
		assert.False(t, expiresNever(&tscb.core))

		assert.Error(t, succeed2Step(tscb))
		assert.Error(t, fail2Step(tscb))
		assert.Error(t, exclude2step(tscb))
		assert.Equal(t, Counts{}, tscb.Counts())

		time.Sleep(tscb.core.timeout - time.Millisecond)
		assert.Equal(t, StateOpen, tscb.State())

		// StateOpen to StateHalfOpen
		time.Sleep(time.Second) // over timeout
		assert.Equal(t, StateHalfOpen, tscb.State())
		assert.True(t, expiresNever(&tscb.core))

		// in half-open state, when max number of requests are in progress,
		// others get rejected because of too many requests
		// but if in-progress requests complete with excluded, circuit breaker can accept requests again
		ch1, err := exclude2StepWithDelay(tscb)
		assert.Nil(t, err)
		ch2, err := exclude2StepWithDelay(tscb)
		assert.Nil(t, err)
		// rejected because of too many requests
		assert.Equal(t, ErrTooManyRequests, succeed2Step(tscb))
		assert.Equal(t, ErrTooManyRequests, fail2Step(tscb))
		// wait for excluded requests to complete
		<-ch1
		<-ch2
		// now circuit breaker should accept requests again
		assert.Nil(t, succeed2Step(tscb))

		// StateHalfOpen to StateOpen
		assert.Nil(t, fail2Step(tscb))
		assert.Equal(t, StateOpen, tscb.State())
		assert.Equal(t, Counts{}, tscb.Counts())
		assert.False(t, expiresNever(&tscb.core))

		// StateOpen to StateHalfOpen
		time.Sleep(tscb.core.timeout + time.Nanosecond)
		assert.Equal(t, StateHalfOpen, tscb.State())
		assert.True(t, expiresNever(&tscb.core))

		// StateHalfOpen to StateClosed
		assert.Nil(t, succeed2Step(tscb))
		assert.Nil(t, succeed2Step(tscb))
		assert.Equal(t, StateClosed, tscb.State())
		assert.Equal(t, Counts{}, tscb.Counts())
		assert.True(t, expiresNever(&tscb.core))
	})
}
