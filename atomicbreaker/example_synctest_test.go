//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A test of a breaker takes no time, whatever its timeouts are.
func TestRecoveryInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := atomicbreaker.MustNew(atomicbreaker.Config{
			Policy:      atomicbreaker.Consecutive(1),
			OpenTimeout: time.Hour,
		})
		answer := errors.New("connection refused")
		call := func() error {
			return upstream.Do(t.Context(), func(context.Context) error { return answer })
		}

		call()
		if err := call(); !errors.Is(err, atomicbreaker.ErrOpen) {
			t.Fatal("the breaker is not open: ", err)
		}

		time.Sleep(time.Hour) // at once
		answer = nil
		if err := call(); err != nil || upstream.State() != atomicbreaker.Closed {
			t.Fatal("the breaker has not recovered: ", err)
		}
	})
}
