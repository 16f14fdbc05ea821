package peers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// failsafeDifferences are of settings that FromFailsafe has made.
var failsafeDifferences = []row{
	{"success-ratio-early", func(t *testing.T) {
		p := likeFailsafe(t, newFS().WithSuccessThresholdRatio(2, 4))
		p.admits(1, errCall)
		p.opensFor(time.Minute)
		p.admits(2, nil) // two of four have succeeded, whatever comes
		p.peer.is(isClosed)
		p.ours.is(isHalfOpen)
		p.ours.admits(2, errCall)
		p.ours.is(isClosed)

		p = likeFailsafe(t, newFS().WithSuccessThresholdRatio(2, 4))
		p.admits(1, errCall)
		p.opensFor(time.Minute)
		p.admits(3, errCall) // two cannot succeed any more
		p.peer.is(isOpen)
		p.ours.is(isHalfOpen)
		p.ours.admits(1, nil)
		p.ours.is(isOpen)
	}},
	{"rate-on-success", func(t *testing.T) {
		p := likeFailsafe(t, newFS().WithFailureRateThreshold(0.5, 4, time.Minute))
		p.admits(2, errCall)
		p.admits(1, nil)
		p.is(isClosed)
		p.admits(1, nil) // the fourth call, and half have failed
		p.peer.is(isOpen)
		p.ours.is(isClosed)
		p.ours.admits(1, errCall)
		p.ours.is(isOpen)
	}},
	{"rate-rounding", func(t *testing.T) {
		p := likeFailsafe(t, newFS().WithFailureRateThreshold(0.5, 101, time.Minute).WithSuccessThreshold(1))
		p.admits(51, nil)
		p.admits(50, errCall) // 0.495…
		p.peer.is(isOpen)
		p.ours.is(isClosed)
		p.ours.admits(1, errCall)
		p.ours.is(isOpen)
	}},
	{"rate-nine-tenths", func(t *testing.T) {
		// 1-0.9 is less than 0.1 in floating point.
		p := likeFailsafe(t, newFS().WithFailureRateThreshold(0.9, 10, time.Minute))
		p.admits(10, errCall)
		p.opensFor(time.Minute)
		succeedThenFail(p.probes(10), 1, errCall)
		p.peer.is(isClosed)
		p.ours.is(isOpen)
	}},
	{"window", func(t *testing.T) {
		// Failures of a period are forgotten up to a tenth of it early there,
		// and up to a fifteenth late here.
		p := likeFailsafe(t, newFS().WithFailureThresholdPeriod(2, 10*time.Second))
		pass(time.Until(time.Now().Truncate(10 * time.Second).Add(10*time.Second + 900*time.Millisecond)))
		p.admits(1, errCall)
		pass(9500 * time.Millisecond)
		p.admits(1, errCall)
		p.peer.is(isClosed)
		p.ours.is(isOpen)
	}},
	{"open-again", func(t *testing.T) {
		peer := newFS().Build()
		c, err := newFS().Config()
		require.NoError(t, err)
		ours := atomicbreaker.MustNew(c)
		p := pair{failsafeSide(t, peer), breakerSide(t, ours)}
		p.admits(1, errCall)
		pass(30 * time.Second)
		peer.Open()
		ours.Trip(0)
		pass(30 * time.Second)
		p.peer.start()
		p.ours.rejects(1)
		pass(30 * time.Second)
		p.ours.start()
	}},
	{"close-closed", func(t *testing.T) {
		b := newFS().WithFailureThreshold(2)
		c, err := b.Config()
		require.NoError(t, err)
		peer, ours := b.Build(), atomicbreaker.MustNew(c)
		p := pair{failsafeSide(t, peer), breakerSide(t, ours)}
		p.admits(1, errCall)
		peer.Close()
		ours.Reset()
		p.admits(1, errCall)
		p.peer.is(isOpen)
		p.ours.is(isClosed)
	}},
}
