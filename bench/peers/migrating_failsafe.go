package peers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/policy"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A FailsafeBuilder is told the settings of a breaker by the methods of
// failsafe's circuitbreaker.Builder. It makes that breaker, and the settings with
// which one of ours does the same. docs/coming-from-breakers.md has a row for each
// method, and says what still differs.
//
// It lacks the listeners, whose events one cannot make.
type FailsafeBuilder[R any] struct {
	builder circuitbreaker.Builder[R]

	failures, ofLast  uint // WithFailureThresholdRatio
	rate              float64
	executions        uint          // before the rate or the period counts
	period            time.Duration // zero: the last calls count
	successes, probes uint          // WithSuccessThresholdRatio; zero: none

	delay, delayMin, delayMax time.Duration
	jitter                    time.Duration
	jitterFactor              float64

	handled policy.BaseFailurePolicy[R]
	errs    []error
}

// FromFailsafe takes the place of circuitbreaker.NewBuilder.
func FromFailsafe[R any]() *FailsafeBuilder[R] {
	return &FailsafeBuilder[R]{
		builder:  circuitbreaker.NewBuilder[R](),
		failures: 1, ofLast: 1, delay: time.Minute,
	}
}

// Build returns failsafe's breaker.
func (b *FailsafeBuilder[R]) Build() circuitbreaker.CircuitBreaker[R] { return b.builder.Build() }

// Config returns the settings of ours, or an error that names all that has no
// counterpart.
func (b *FailsafeBuilder[R]) Config() (atomicbreaker.Config, error) {
	errs := append([]error(nil), b.errs...)
	c := atomicbreaker.Config{
		Policy: b.trip(),
		Classify: func(_ context.Context, err error) atomicbreaker.Outcome {
			if b.handled.IsFailure(*new(R), err) {
				return atomicbreaker.Failure
			}
			return atomicbreaker.Success
		},
	}
	errs = append(errs, b.setOpen(&c), b.setProbes(&c))
	if err := errors.Join(errs...); err != nil {
		return atomicbreaker.Config{}, err
	}
	return c, nil
}

// trip is what opens a closed breaker.
func (b *FailsafeBuilder[R]) trip() atomicbreaker.Policy {
	switch {
	case b.period != 0 && b.rate != 0:
		return atomicbreaker.FailureRate(roundDown(b.rate), int(max(1, b.executions)), b.period)
	case b.period != 0:
		return atomicbreaker.FailureCount(int(b.failures), b.period)
	case b.failures == b.ofLast:
		return atomicbreaker.Consecutive(int(b.failures))
	}
	return atomicbreaker.KOfN(int(b.failures), int(b.ofLast))
}

// roundDown returns what a ratio such as 2.0/3 has to be here: it is kept in
// millionths, and rounded up it would be above two of three.
func roundDown(ratio float64) float64 { return math.Floor(ratio*1e6+1e-6) / 1e6 }

// setProbes sets what closes a half-open breaker, and what opens it again: so
// many failures of so many probes.
func (b *FailsafeBuilder[R]) setProbes(c *atomicbreaker.Config) error {
	failures, of, why := b.failures, b.ofLast, "without WithSuccessThreshold: the failure threshold"
	switch {
	case b.successes != 0:
		failures, of, why = b.probes-b.successes+1, b.probes, "WithSuccessThresholdRatio"
		if b.successes > b.probes {
			return fmt.Errorf("failsafe %s(%d, %d): never closes", why, b.successes, b.probes)
		}
	case b.rate != 0:
		of = max(1, b.executions)
		failures = uint(math.Ceil(b.rate*float64(of) - 1e-6))
	}
	if of > mostProbes {
		return fmt.Errorf("failsafe %s of %d probes: Probes and CloseAfter are at most %d", why, of, mostProbes)
	}
	c.Probes, c.CloseAfter = int(of), int(of)
	if failures > 1 {
		c.ProbeFailureRate = (float64(failures) - 0.5) / float64(of) // halfway to one less
	}
	return nil
}

// setOpen sets how long an open breaker stays so: for a time between two.
func (b *FailsafeBuilder[R]) setOpen(c *atomicbreaker.Config) error {
	shortest, longest := b.delay, b.delay
	random := b.delay == 0 && b.delayMin != 0 && b.delayMax != 0
	if random {
		shortest, longest = b.delayMin, b.delayMax
	}
	switch {
	case random && (b.jitter != 0 || b.jitterFactor != 0):
		return errors.New("failsafe WithRandomDelay with a jitter: the sum of two is not spread evenly")
	case longest > 0 && b.jitter != 0:
		shortest, longest = shortest-b.jitter, longest+b.jitter
	case longest > 0 && b.jitterFactor != 0:
		by := time.Duration(float64(b.delay) * b.jitterFactor)
		shortest, longest = shortest-by, longest+by
	}
	switch {
	case longest <= 0:
		longest, shortest = time.Millisecond, time.Millisecond
	case shortest < 0 || shortest > longest:
		return fmt.Errorf("failsafe jitter: %v to %v is no time to stay open", shortest, longest)
	case longest > longestOpen:
		return fmt.Errorf("failsafe WithDelay(%v): must be at most %v", longest, longestOpen)
	}
	c.OpenTimeout = longest
	c.Jitter = float64(longest-shortest) / float64(longest)
	return nil
}

// lacks notes that a method has no counterpart.
func (b *FailsafeBuilder[R]) lacks(method, instead string) *FailsafeBuilder[R] {
	b.errs = append(b.errs, fmt.Errorf("failsafe %s: no setting; %s", method, instead))
	return b
}

// WithFailureThreshold is Consecutive(failures).
func (b *FailsafeBuilder[R]) WithFailureThreshold(failures uint) *FailsafeBuilder[R] {
	return b.WithFailureThresholdRatio(failures, failures)
}

// WithFailureThresholdRatio is KOfN(failures, executions).
func (b *FailsafeBuilder[R]) WithFailureThresholdRatio(failures, executions uint) *FailsafeBuilder[R] {
	b.builder.WithFailureThresholdRatio(failures, executions)
	b.failures, b.ofLast = failures, executions
	return b
}

// WithFailureThresholdPeriod is FailureCount(failures, period).
func (b *FailsafeBuilder[R]) WithFailureThresholdPeriod(failures uint, period time.Duration) *FailsafeBuilder[R] {
	b.builder.WithFailureThresholdPeriod(failures, period)
	b.failures, b.ofLast, b.executions, b.period = failures, failures, failures, period
	return b
}

// WithFailureRateThreshold is FailureRate(rate, executions, period).
func (b *FailsafeBuilder[R]) WithFailureRateThreshold(rate float64, executions uint, period time.Duration) *FailsafeBuilder[R] {
	b.builder.WithFailureRateThreshold(rate, executions, period)
	b.rate, b.executions, b.period = rate, executions, period
	return b
}

// WithSuccessThreshold is Probes and CloseAfter.
func (b *FailsafeBuilder[R]) WithSuccessThreshold(successes uint) *FailsafeBuilder[R] {
	return b.WithSuccessThresholdRatio(successes, successes)
}

// WithSuccessThresholdRatio is Probes, CloseAfter and ProbeFailureRate.
func (b *FailsafeBuilder[R]) WithSuccessThresholdRatio(successes, executions uint) *FailsafeBuilder[R] {
	b.builder.WithSuccessThresholdRatio(successes, executions)
	b.successes, b.probes = successes, executions
	return b
}

// WithDelay is OpenTimeout.
func (b *FailsafeBuilder[R]) WithDelay(delay time.Duration) *FailsafeBuilder[R] {
	b.builder.WithDelay(delay)
	b.delay = delay
	return b
}

// WithDelayFunc has no counterpart: Permit.Trip opens at once.
func (b *FailsafeBuilder[R]) WithDelayFunc(delay failsafe.DelayFunc[R]) *FailsafeBuilder[R] {
	b.builder.WithDelayFunc(delay)
	return b.lacks("WithDelayFunc", "report Permit.Trip")
}

// WithRandomDelay is OpenTimeout and Jitter.
func (b *FailsafeBuilder[R]) WithRandomDelay(delayMin, delayMax time.Duration) *FailsafeBuilder[R] {
	b.builder.WithRandomDelay(delayMin, delayMax)
	b.delay, b.delayMin, b.delayMax = 0, delayMin, delayMax
	return b
}

// WithJitter is OpenTimeout and Jitter.
func (b *FailsafeBuilder[R]) WithJitter(jitter time.Duration) *FailsafeBuilder[R] {
	b.builder.WithJitter(jitter)
	b.jitter = jitter
	return b
}

// WithJitterFactor is OpenTimeout and Jitter.
func (b *FailsafeBuilder[R]) WithJitterFactor(factor float64) *FailsafeBuilder[R] {
	b.builder.WithJitterFactor(factor)
	b.jitterFactor = factor
	return b
}

// HandleErrors is Classify.
func (b *FailsafeBuilder[R]) HandleErrors(errs ...error) *FailsafeBuilder[R] {
	b.builder.HandleErrors(errs...)
	b.handled.HandleErrors(errs...)
	return b
}

// HandleErrorTypes is Classify.
func (b *FailsafeBuilder[R]) HandleErrorTypes(errs ...any) *FailsafeBuilder[R] {
	b.builder.HandleErrorTypes(errs...)
	b.handled.HandleErrorTypes(errs...)
	return b
}

// HandleIf is Classify for a predicate of errors, which ours hands a zero result.
func (b *FailsafeBuilder[R]) HandleIf(predicate func(R, error) bool) *FailsafeBuilder[R] {
	b.builder.HandleIf(predicate)
	b.handled.HandleIf(predicate)
	return b
}

// HandleResult is ExecuteResult: no setting sees results.
func (b *FailsafeBuilder[R]) HandleResult(result R) *FailsafeBuilder[R] {
	b.builder.HandleResult(result)
	return b.lacks("HandleResult", "call ExecuteResult")
}
