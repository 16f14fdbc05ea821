package peers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Each row is a subtest that makes the same calls through failsafe's breaker
// and ours.
func TestMigratingFromFailsafe(t *testing.T) {
	runRows(t, slices.Concat(failsafeRows, failsafeDifferences))
}

// likeFailsafe returns failsafe's breaker beside ours with what FromFailsafe
// makes of the same settings.
func likeFailsafe(t *testing.T, b *FailsafeBuilder[int]) pair {
	t.Helper()
	c, err := b.Config()
	require.NoError(t, err)
	return besideFailsafe(t, b, c)
}

func besideFailsafe(t *testing.T, b *FailsafeBuilder[int], c atomicbreaker.Config) pair {
	t.Helper()
	return pair{failsafeSide(t, b.Build()), latchfreeSide(t, c)}
}

// newFS is a builder that is not told when to close again.
func newFS() *FailsafeBuilder[int] { return FromFailsafe[int]() }

// succeedThenFail ends calls that are in flight, the first of them well. In this
// order the last result is the one that opens failsafe's breaker, so that it has
// none to count for the state after.
func succeedThenFail(done []func(error), successes int, failure error) {
	for i, d := range done {
		if i < successes {
			d(nil)
		} else {
			d(failure)
		}
	}
}

// failThenSucceed does it in the order for one that closes.
func failThenSucceed(done []func(error), failures int) {
	for i, d := range done {
		if i < failures {
			d(errCall)
		} else {
			d(nil)
		}
	}
}

var failsafeRows = []row{
	{"defaults", func(t *testing.T) {
		for _, p := range []pair{likeFailsafe(t, newFS()), besideFailsafe(t, newFS(), atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1),
		})} {
			p.admits(10, nil)
			p.is(isClosed)
			p.admits(1, errCall)
			for range 12 {
				p.opensFor(time.Minute)
				p.probes(1)[0](errCall)
			}
			p.opensFor(time.Minute)
			p.probes(1)[0](nil)
			p.is(isClosed)
		}
		s := failsafeSide(t, circuitbreaker.NewWithDefaults[int]())
		s.admits(1, errCall)
		s.is(isOpen)
	}},
	{"execute", func(t *testing.T) {
		c, err := newFS().Config()
		require.NoError(t, err)
		peer, ours := failsafe.With(newFS().Build()), atomicbreaker.MustNew(c)
		result, err := peer.Get(func() (int, error) { return 7, nil })
		assert.Equal(t, 7, result)
		assert.NoError(t, err)
		result, err = atomicbreaker.Execute(ours, func() (int, error) { return 7, nil })
		assert.Equal(t, 7, result)
		assert.NoError(t, err)

		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, 7)
		result, err = peer.WithContext(ctx).GetWithExecution(func(e failsafe.Execution[int]) (int, error) {
			return e.Context().Value(key{}).(int), errCall
		})
		assert.Equal(t, 7, result)
		assert.ErrorIs(t, err, errCall)
		result, err = atomicbreaker.ExecuteContext(ctx, ours, func(ctx context.Context) (int, error) {
			return ctx.Value(key{}).(int), errCall
		})
		assert.Equal(t, 7, result)
		assert.ErrorIs(t, err, errCall)

		_, err = peer.Get(func() (int, error) { return 7, nil })
		assert.ErrorIs(t, err, circuitbreaker.ErrOpen)
		_, err = atomicbreaker.Execute(ours, func() (int, error) { return 7, nil })
		assert.ErrorIs(t, err, atomicbreaker.ErrOpen)
	}},
	{"permits", func(t *testing.T) {
		p := likeFailsafe(t, newFS().WithFailureThreshold(2))
		first, second := p.start(), p.start()
		first(errCall)
		p.is(isClosed)
		second(errCall)
		p.is(isOpen)
	}},
	{"errors", func(t *testing.T) {
		p := likeFailsafe(t, newFS())
		p.admits(1, errCall)
		_, peer := p.peer.allow()
		_, ours := p.ours.allow()
		assert.ErrorIs(t, peer, circuitbreaker.ErrOpen)
		assert.ErrorIs(t, ours, atomicbreaker.ErrOpen)
		p.opensFor(time.Minute)
		p.probes(1)
		_, peer = p.peer.allow()
		_, ours = p.ours.allow()
		assert.ErrorIs(t, peer, circuitbreaker.ErrOpen, "it has one error for both")
		assert.ErrorIs(t, ours, atomicbreaker.ErrTooManyProbes)
		assert.ErrorIs(t, ours, atomicbreaker.ErrRejected)
	}},

	{"threshold", func(t *testing.T) {
		b := newFS().WithFailureThreshold(3)
		for _, p := range []pair{likeFailsafe(t, b), besideFailsafe(t, b, atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(3),
		})} {
			p.admits(2, errCall)
			p.admits(1, nil)
			p.admits(2, errCall)
			pass(24 * time.Hour)
			p.is(isClosed)
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"threshold-ratio", func(t *testing.T) {
		for _, n := range []int{2, 5, 31} {
			for k := 1; k < n; k += 3 {
				b := newFS().WithFailureThresholdRatio(uint(k), uint(n))
				for _, p := range []pair{likeFailsafe(t, b), besideFailsafe(t, b, atomicbreaker.Config{
					Policy: atomicbreaker.KOfN(k, n),
				})} {
					for range 3 { // k-1 failures leave with the next n calls
						p.admits(k-1, errCall)
						p.admits(n-k+1, nil)
						p.is(isClosed)
					}
					p.admits(k-1, errCall)
					p.admits(n-k, nil)
					p.is(isClosed)
					p.admits(1, errCall)
					p.is(isOpen)
				}
			}
		}
		_, err := newFS().WithFailureThresholdRatio(2, 5).WithSuccessThreshold(32).Config()
		assert.ErrorContains(t, err, "WithSuccessThresholdRatio of 32 probes")
	}},
	{"threshold-period", func(t *testing.T) {
		b := newFS().WithFailureThresholdPeriod(3, time.Minute)
		for _, p := range []pair{likeFailsafe(t, b), besideFailsafe(t, b, atomicbreaker.Config{
			Policy: atomicbreaker.FailureCount(3, time.Minute),
		})} {
			p.admits(2, errCall)
			pass(2 * time.Minute)
			p.admits(2, errCall)
			p.admits(50, nil)
			p.is(isClosed)
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"rate", func(t *testing.T) {
		b := newFS().WithFailureRateThreshold(0.6, 20, time.Minute)
		for _, p := range []pair{likeFailsafe(t, b), besideFailsafe(t, b, atomicbreaker.Config{
			Policy: atomicbreaker.FailureRate(0.6, 20, time.Minute),
		})} {
			p.admits(8, nil)
			p.admits(11, errCall)
			p.is(isClosed) // there are no twenty yet
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"rate-third", func(t *testing.T) {
		b := newFS().WithFailureRateThreshold(2.0/3, 3, time.Minute)
		p := likeFailsafe(t, b)
		p.admits(1, nil)
		p.admits(2, errCall)
		p.is(isOpen)
		p = besideFailsafe(t, b, atomicbreaker.Config{Policy: atomicbreaker.FailureRate(2.0/3, 3, time.Minute)})
		p.admits(1, nil)
		p.admits(2, errCall)
		p.is(isOpen)
	}},

	{"success-threshold", func(t *testing.T) {
		for _, n := range []int{1, 3, 31} {
			b := newFS().WithSuccessThreshold(uint(n))
			for _, p := range []pair{likeFailsafe(t, b), besideFailsafe(t, b, atomicbreaker.Config{
				Policy: atomicbreaker.Consecutive(1), Probes: n, CloseAfter: n,
			})} {
				p.admits(1, errCall)
				p.opensFor(time.Minute) // together
				succeedThenFail(p.probes(n), n-1, errCall)
				p.opensFor(time.Minute) // and one after another
				p.admits(n-1, nil)
				p.probes(n)[0](nil) // as many in flight, whatever has reported
				p.is(isClosed)
			}
		}
	}},
	{"success-ratio", func(t *testing.T) {
		for _, n := range []int{2, 3, 7, 31} {
			for k := 1; k <= n; k++ {
				b := newFS().WithSuccessThresholdRatio(uint(k), uint(n))
				for _, p := range []pair{likeFailsafe(t, b), besideFailsafe(t, b, atomicbreaker.Config{
					Policy: atomicbreaker.Consecutive(1),
					Probes: n, CloseAfter: n, ProbeFailureRate: (float64(n-k+1) - 0.5) / float64(n),
				})} {
					p.admits(1, errCall)
					p.opensFor(time.Minute)
					succeedThenFail(p.probes(n), k-1, errCall)
					p.opensFor(time.Minute)
					failThenSucceed(p.probes(n), n-k)
					p.is(isClosed)
				}
			}
		}
		_, err := newFS().WithSuccessThresholdRatio(3, 2).Config()
		assert.ErrorContains(t, err, "WithSuccessThresholdRatio(3, 2)")
	}},
	{"no-success-threshold", func(t *testing.T) {
		for _, n := range []int{3, 7, 31} {
			for k := 1; k <= n; k++ {
				p := likeFailsafe(t, newFS().WithFailureThresholdRatio(uint(k), uint(n)))
				p.admits(k, errCall)
				p.opensFor(time.Minute)
				succeedThenFail(p.probes(n), n-k, errCall)
				p.opensFor(time.Minute)
				failThenSucceed(p.probes(n), k-1)
				p.is(isClosed)
			}
		}
		// Of n in a row one success closes there, and here n have to report.
		p := likeFailsafe(t, newFS().WithFailureThreshold(5))
		p.admits(5, errCall)
		p.opensFor(time.Minute)
		p.admits(1, nil)
		p.peer.is(isClosed)
		p.ours.is(isHalfOpen)
		p.ours.admits(4, errCall)
		p.ours.is(isClosed)
		// A failure opens neither.
		p = likeFailsafe(t, newFS().WithFailureThreshold(5))
		p.admits(5, errCall)
		p.opensFor(time.Minute)
		p.admits(4, errCall)
		p.is(isHalfOpen)
		p.admits(1, errCall)
		p.is(isOpen)

		_, err := newFS().WithFailureThreshold(32).Config()
		assert.ErrorContains(t, err, "without WithSuccessThreshold: the failure threshold of 32 probes")
		_, err = newFS().WithFailureThreshold(32).WithSuccessThreshold(1).Config()
		assert.NoError(t, err)
	}},
	{"no-success-threshold-rate", func(t *testing.T) {
		for failures := range 11 {
			p := likeFailsafe(t, newFS().WithFailureRateThreshold(0.6, 10, time.Minute))
			p.admits(10, errCall)
			p.opensFor(time.Minute)
			if done := p.probes(10); failures >= 6 {
				succeedThenFail(done, 10-failures, errCall)
				p.is(isOpen)
			} else {
				failThenSucceed(done, failures)
				p.is(isClosed)
			}
		}
	}},

	{"delay", func(t *testing.T) {
		b := newFS().WithDelay(30 * time.Second)
		for _, p := range []pair{likeFailsafe(t, b), besideFailsafe(t, b, atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), OpenTimeout: 30 * time.Second,
		})} {
			p.admits(1, errCall)
			for range 12 {
				p.opensFor(30 * time.Second)
				p.probes(1)[0](errCall)
			}
		}
		// Above it, MaxOpenTimeout makes it double.
		p := besideFailsafe(t, b, atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: 30 * time.Second, MaxOpenTimeout: time.Minute})
		p.admits(1, errCall)
		p.opensFor(30 * time.Second)
		p.probes(1)[0](errCall)
		pass(31 * time.Second)
		p.peer.start()
		p.ours.rejects(1)
		_, err := newFS().WithDelay(400 * 24 * time.Hour).Config()
		assert.ErrorContains(t, err, "WithDelay(9600h")
	}},
	{"delay-zero", func(t *testing.T) {
		for _, delay := range []time.Duration{0, -time.Second} {
			p := likeFailsafe(t, newFS().WithDelay(delay))
			p.admits(1, errCall)
			p.peer.admits(1, errCall) // at once
			p.ours.rejects(1)
			pass(time.Millisecond)
			p.ours.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"delay-func", func(t *testing.T) {
		b := newFS().WithDelayFunc(func(e failsafe.ExecutionAttempt[int]) time.Duration {
			return time.Duration(e.LastResult()) * time.Second // Retry-After
		})
		_, err := b.Config()
		require.ErrorContains(t, err, "WithDelayFunc")
		peer := failsafe.With(b.Build())
		ours := atomicbreaker.MustNew(atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), MaxOpenTimeout: time.Hour,
		})
		_, err = peer.Get(func() (int, error) { return 300, errCall })
		require.ErrorIs(t, err, errCall)
		permit, err := ours.Allow()
		require.NoError(t, err)
		assert.Equal(t, atomicbreaker.Tripped, permit.Trip(300*time.Second))
		pass(299 * time.Second)
		_, err = peer.Get(func() (int, error) { return 0, nil })
		assert.Error(t, err)
		breakerSide(t, ours).rejects(1)
		pass(time.Second)
		_, err = peer.Get(func() (int, error) { return 0, nil })
		assert.NoError(t, err)
		breakerSide(t, ours).admits(1, nil)

		// Trip does not wait for the threshold.
		peerBreaker := b.WithFailureThreshold(3).Build()
		_, _ = failsafe.With(peerBreaker).Get(func() (int, error) { return 300, errCall })
		assert.True(t, peerBreaker.IsClosed())
		ours = atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3)})
		permit, err = ours.Allow()
		require.NoError(t, err)
		permit.Trip(300 * time.Second)
		breakerSide(t, ours).is(isOpen)
	}},
	{"random-delay", func(t *testing.T) {
		opensWithin(t, newFS().WithRandomDelay(20*time.Second, 30*time.Second), 20*time.Second, 30*time.Second)
		_, err := newFS().WithRandomDelay(20*time.Second, 30*time.Second).WithJitter(time.Second).Config()
		assert.ErrorContains(t, err, "WithRandomDelay")
		// A minimum of zero is no time at all there.
		b := newFS().WithRandomDelay(0, time.Hour).Build()
		b.RecordFailure()
		assert.Zero(t, b.RemainingDelay())
	}},
	{"jitter", func(t *testing.T) {
		opensWithin(t, newFS().WithDelay(30*time.Second).WithJitter(10*time.Second), 20*time.Second, 40*time.Second)
		_, err := newFS().WithDelay(time.Second).WithJitter(time.Minute).Config()
		assert.ErrorContains(t, err, "failsafe jitter: -59s to 1m1s")
	}},
	{"jitter-factor", func(t *testing.T) {
		opensWithin(t, newFS().WithDelay(40*time.Second).WithJitterFactor(0.25), 30*time.Second, 50*time.Second)
	}},

	{"handle-errors", func(t *testing.T) {
		timeout := errors.New("timeout")
		for _, b := range []*FailsafeBuilder[int]{
			newFS().WithFailureThreshold(2).HandleErrors(timeout, errCall),
			newFS().WithFailureThreshold(2).HandleErrorTypes(&callError{}),
			newFS().WithFailureThreshold(2).HandleIf(func(_ int, err error) bool { return errors.Is(err, timeout) || errors.As(err, new(*callError)) }),
		} {
			var fails error = &callError{timeout}
			p := likeFailsafe(t, b)
			p.admits(1, fails)
			p.admits(1, errors.New("not found")) // what is not handled is a success, here in between
			p.admits(1, fails)
			p.is(isClosed)
			p.admits(1, fmt.Errorf("lookup: %w", fails))
			p.is(isOpen)
			p.opensFor(time.Minute)
			succeedThenFail(p.probes(2), 0, fails)
			p.opensFor(time.Minute)
			for _, done := range p.probes(2) {
				done(errors.New("not found")) // and closes
			}
			p.is(isClosed)
		}
	}},
	{"handle-result", func(t *testing.T) {
		b := newFS().HandleResult(-1)
		_, err := b.Config()
		require.ErrorContains(t, err, "HandleResult")
		peer := b.Build()
		_, err = failsafe.With(peer).Get(func() (int, error) { return -1, nil })
		require.NoError(t, err)
		assert.True(t, peer.IsOpen())
		ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
		_, err = atomicbreaker.ExecuteResult(t.Context(), ours, func(context.Context) (int, error) { return -1, nil }, func(n int, err error) atomicbreaker.Outcome {
			if n == -1 {
				return atomicbreaker.Failure
			}
			return atomicbreaker.Success // HandleResult alone handles no error
		})
		require.NoError(t, err)
		breakerSide(t, ours).is(isOpen)
	}},
	{"cancelled", func(t *testing.T) {
		p := likeFailsafe(t, newFS())
		p.admits(1, context.Canceled)
		p.is(isOpen)
		p = besideFailsafe(t, newFS(), atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
		p.admits(1, context.Canceled)
		p.peer.is(isOpen)
		p.ours.is(isClosed)
	}},

	{"listeners", func(t *testing.T) {
		var told, each []string
		note := func(name string) func(circuitbreaker.StateChangedEvent) {
			return func(circuitbreaker.StateChangedEvent) { each = append(each, name) }
		}
		b := circuitbreaker.NewBuilder[int]().
			OnStateChanged(func(e circuitbreaker.StateChangedEvent) {
				told = append(told, fmt.Sprint(e.OldState, " to ", e.NewState, " with ", e.Metrics().Failures()))
			}).
			OnOpen(note("open")).OnHalfOpen(note("half-open")).OnClose(note("close")).
			Build()
		c, err := newFS().Config()
		require.NoError(t, err)
		c.OnStateChange = func(e atomicbreaker.Event) {
			failures := e.Failures
			if e.From == atomicbreaker.Open {
				failures = 1 // there, those of the closed state before
			}
			told = append(told, fmt.Sprint(stateName(e.From), " to ", stateName(e.To), " with ", failures))
			each = append(each, map[atomicbreaker.State]string{
				atomicbreaker.Open: "open", atomicbreaker.HalfOpen: "half-open", atomicbreaker.Closed: "close",
			}[e.To])
		}
		for _, s := range []side{failsafeSide(t, b), latchfreeSide(t, c)} {
			told, each = nil, nil
			s.admits(1, errCall)
			pass(time.Minute)
			s.admits(1, errCall)
			pass(time.Minute)
			s.admits(1, nil)
			assert.Equal(t, []string{
				"closed to open with 1", "open to half-open with 1", "half-open to open with 1",
				"open to half-open with 1", "half-open to closed with 0",
			}, told, s.impl)
			assert.Equal(t, []string{"open", "half-open", "open", "half-open", "close"}, each, s.impl)
		}
	}},
	{"state", func(t *testing.T) {
		b := newFS().Build()
		ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
		p := pair{failsafeSide(t, b), breakerSide(t, ours)}
		assert.True(t, b.IsClosed())
		p.admits(1, errCall)
		p.is(isOpen)
		assert.True(t, b.IsOpen() && ours.IsOpen())
		pass(time.Minute)
		p.peer.is(isOpen) // until somebody asks for a permit
		assert.True(t, b.IsOpen())
		p.ours.is(isHalfOpen)
		assert.False(t, ours.IsOpen())
		p.start()
		p.is(isHalfOpen)
		assert.True(t, b.IsHalfOpen())
	}},
	{"metrics", func(t *testing.T) {
		peer := newFS().WithFailureThresholdPeriod(3, time.Minute).Build()
		ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.FailureRate(1, 3, time.Minute)})
		p := pair{failsafeSide(t, peer), breakerSide(t, ours)}
		p.admits(1, nil)
		p.admits(1, errCall)
		m, here := peer.Metrics(), ours.Snapshot()
		assert.Equal(t, []uint{2, 1}, []uint{m.Executions(), m.Failures()})
		assert.Equal(t, []int{2, 1}, []int{here.Window.Calls, here.Window.Failures})
		assert.Equal(t, m.FailureRate(), here.Window.FailureRate())
		p.admits(2, errCall)
		p.peer.is(isOpen)
		ours.Trip(0)
		assert.EqualValues(t, 3, m.Failures(), "of the closed state before")
		assert.Zero(t, ours.Snapshot().Window)
		pass(20 * time.Second)
		assert.Equal(t, 40*time.Second, peer.RemainingDelay())
		assert.Equal(t, 40*time.Second, ours.Snapshot().RetryAfter)
	}},
	{"by-hand", func(t *testing.T) {
		peer := newFS().Build()
		c, err := newFS().Config()
		require.NoError(t, err)
		ours := atomicbreaker.MustNew(c)
		p := pair{failsafeSide(t, peer), breakerSide(t, ours)}
		peer.Open()
		ours.Trip(0)
		p.opensFor(time.Minute)
		p.probes(1)[0](nil)
		p.is(isClosed)

		peer.Open()
		ours.Trip(0)
		peer.HalfOpen()
		ours.HalfOpen()
		p.is(isHalfOpen)
		probe := p.probes(1)[0]
		peer.HalfOpen() // the probe stays the only one
		ours.HalfOpen()
		p.rejects(1)
		probe(errCall)
		p.is(isOpen)

		peer.Close()
		ours.Reset()
		p.is(isClosed)
		p.admits(10, nil)
	}},
	{"record", func(t *testing.T) {
		peer := newFS().WithFailureThreshold(2).Build()
		ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)})
		p := pair{failsafeSide(t, peer), breakerSide(t, ours)}
		peer.RecordFailure()
		ours.RecordFailure()
		peer.RecordSuccess()
		ours.RecordSuccess()
		peer.RecordFailure()
		ours.RecordFailure()
		p.is(isClosed)
		peer.RecordFailure()
		ours.RecordFailure()
		p.is(isOpen)
		// A success then closes ours.
		peer.RecordSuccess()
		ours.RecordSuccess()
		p.peer.is(isOpen)
		p.ours.is(isClosed)
	}},
}

// A callError is an error of a type of its own.
type callError struct{ cause error }

func (e *callError) Error() string { return "call failed: " + e.cause.Error() }
func (e *callError) Unwrap() error { return e.cause }

// opensWithin requires both to stay open for at least shortest and at most
// longest, and not always alike.
func opensWithin(t *testing.T, b *FailsafeBuilder[int], shortest, longest time.Duration) {
	t.Helper()
	c, err := b.Config()
	require.NoError(t, err)
	span := longest - shortest
	for impl, openFor := range map[string]func() time.Duration{
		"failsafe": func() time.Duration {
			peer := b.Build()
			peer.RecordFailure()
			return peer.RemainingDelay()
		},
		"latchfree": func() time.Duration {
			ours := atomicbreaker.MustNew(c)
			breakerSide(t, ours).admits(1, errCall)
			return ours.Snapshot().RetryAfter
		},
	} {
		low, high := time.Duration(math.MaxInt64), time.Duration(0)
		for range 300 {
			d := openFor()
			low, high = min(low, d), max(high, d)
		}
		const rounds = time.Millisecond
		assert.GreaterOrEqual(t, low, shortest, impl)
		assert.LessOrEqual(t, high, longest+rounds, impl)
		assert.Less(t, low, shortest+span/10, impl) // 0.9^300 that none is
		assert.Greater(t, high, longest-span/10, impl)
	}
}
