package peers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/load"
)

var errCall = errors.New("call failed")

const (
	// failuresToOpen is latchfree's default.
	failuresToOpen = 5
	// stormFailures is more than the goroutines of a benchmark, of which each
	// fails once between two successes: nothing opens.
	stormFailures = 1 << 16
)

func newLatchfree(failures int) *atomicbreaker.Breaker {
	return atomicbreaker.MustNew(atomicbreaker.Config{Trip: atomicbreaker.Consecutive(failures), OpenTimeout: openTimeout})
}

func newLatchfreeGroup(failures int) *atomicbreaker.Group[string] {
	return atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Trip: atomicbreaker.Consecutive(failures), OpenTimeout: openTimeout},
	})
}

// BenchmarkBreakerHealthy asks and reports a success.
func BenchmarkBreakerHealthy(b *testing.B) {
	compare(b, "",
		contender{"gobreaker", func(b *testing.B) func(*testing.PB) {
			breaker := newGobreakerTwoStep(failuresToOpen)
			return func(pb *testing.PB) {
				for pb.Next() {
					done, err := breaker.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					done(nil)
				}
			}
		}},
		contender{"failsafe", func(b *testing.B) func(*testing.PB) {
			breaker := newFailsafe(failuresToOpen)
			return func(pb *testing.PB) {
				for pb.Next() {
					if !breaker.TryAcquirePermit() {
						b.Error("rejected")
						return
					}
					breaker.RecordSuccess()
				}
			}
		}},
		contender{"latchfree", func(b *testing.B) func(*testing.PB) {
			breaker := newLatchfree(failuresToOpen)
			return func(pb *testing.PB) {
				for pb.Next() {
					permit, err := breaker.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					permit.Success()
				}
			}
		}},
	)
}

// BenchmarkBreakerExecute has the breaker call a function that captures a
// variable and succeeds.
func BenchmarkBreakerExecute(b *testing.B) {
	compare(b, "",
		contender{"gobreaker", func(b *testing.B) func(*testing.PB) {
			breaker := newGobreaker(failuresToOpen)
			return func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if v, err := breaker.Execute(func() (int, error) { return i, nil }); v != i || err != nil {
						b.Error(v, err)
						return
					}
				}
			}
		}},
		contender{"failsafe", func(b *testing.B) func(*testing.PB) {
			executor := newFailsafeExecutor(failuresToOpen)
			return func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if v, err := executor.Get(func() (int, error) { return i, nil }); v != i || err != nil {
						b.Error(v, err)
						return
					}
				}
			}
		}},
		contender{"latchfree", func(b *testing.B) func(*testing.PB) {
			breaker := newLatchfree(failuresToOpen)
			return func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if v, err := atomicbreaker.Execute(breaker, func() (int, error) { return i, nil }); v != i || err != nil {
						b.Error(v, err)
						return
					}
				}
			}
		}},
	)
}

// BenchmarkBreakerStorm reports failures and successes in turn: enough happens
// to write at each call, and never enough to open.
func BenchmarkBreakerStorm(b *testing.B) {
	compare(b, "",
		contender{"gobreaker", func(b *testing.B) func(*testing.PB) {
			breaker := newGobreakerTwoStep(stormFailures)
			return func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					done, err := breaker.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					if i%2 == 0 {
						done(errCall)
					} else {
						done(nil)
					}
				}
			}
		}},
		contender{"failsafe", func(b *testing.B) func(*testing.PB) {
			breaker := newFailsafe(stormFailures)
			return func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if !breaker.TryAcquirePermit() {
						b.Error("rejected")
						return
					}
					if i%2 == 0 {
						breaker.RecordFailure()
					} else {
						breaker.RecordSuccess()
					}
				}
			}
		}},
		contender{"latchfree", func(b *testing.B) func(*testing.PB) {
			breaker := newLatchfree(stormFailures)
			return func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					permit, err := breaker.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					if i%2 == 0 {
						permit.Failure()
					} else {
						permit.Success()
					}
				}
			}
		}},
	)
}

// BenchmarkBreakerOpen asks an open breaker.
func BenchmarkBreakerOpen(b *testing.B) {
	compare(b, "",
		contender{"gobreaker", func(b *testing.B) func(*testing.PB) {
			breaker := newGobreakerTwoStep(failuresToOpen)
			for range failuresToOpen {
				done, _ := breaker.Allow()
				done(errCall)
			}
			return func(pb *testing.PB) {
				for pb.Next() {
					if _, err := breaker.Allow(); err == nil {
						b.Error("admitted")
						return
					}
				}
			}
		}},
		contender{"failsafe", func(b *testing.B) func(*testing.PB) {
			breaker := newFailsafe(failuresToOpen)
			for range failuresToOpen {
				breaker.RecordFailure()
			}
			return func(pb *testing.PB) {
				for pb.Next() {
					if breaker.TryAcquirePermit() {
						b.Error("admitted")
						return
					}
				}
			}
		}},
		contender{"latchfree", func(b *testing.B) func(*testing.PB) {
			breaker := newLatchfree(failuresToOpen)
			for range failuresToOpen {
				permit, _ := breaker.Allow()
				permit.Failure()
			}
			return func(pb *testing.PB) {
				for pb.Next() {
					if _, err := breaker.Allow(); err == nil {
						b.Error("admitted")
						return
					}
				}
			}
		}},
	)
}

// BenchmarkGroupCall asks for one of many keys and reports the outcome, which
// is a failure for the given percentage of calls.
func BenchmarkGroupCall(b *testing.B) {
	const keys = 1000
	names := load.Names(keys)
	for _, failing := range []int{0, 1, 10} {
		streams := load.Uniform(keys, failing)
		compare(b, fmt.Sprintf("keys=%d/failing=%d%%/", keys, failing),
			contender{"gobreaker", func(b *testing.B) func(*testing.PB) {
				group := newGobreakerGroup(stormFailures)
				return func(pb *testing.PB) {
					for stream := streams.Stream(); pb.Next(); {
						i, fails := stream.Next()
						done, err := group.allow(names[i])
						if err != nil {
							b.Error(err)
							return
						}
						if fails {
							done(errCall)
						} else {
							done(nil)
						}
					}
				}
			}},
			contender{"failsafe", func(b *testing.B) func(*testing.PB) {
				group := newFailsafeGroup(stormFailures)
				return func(pb *testing.PB) {
					for stream := streams.Stream(); pb.Next(); {
						i, fails := stream.Next()
						breaker := group.of(names[i])
						if !breaker.TryAcquirePermit() {
							b.Error("rejected")
							return
						}
						if fails {
							breaker.RecordFailure()
						} else {
							breaker.RecordSuccess()
						}
					}
				}
			}},
			contender{"latchfree", func(b *testing.B) func(*testing.PB) {
				group := newLatchfreeGroup(stormFailures)
				return func(pb *testing.PB) {
					for stream := streams.Stream(); pb.Next(); {
						i, fails := stream.Next()
						permit, err := group.Allow(names[i])
						if err != nil {
							b.Error(err)
							return
						}
						if fails {
							permit.Failure()
						} else {
							permit.Success()
						}
					}
				}
			}},
		)
	}
}

// TestBreakersOpen checks that each opens at the failure it is configured for,
// that a success in between starts the count anew, and that it then rejects.
func TestBreakersOpen(t *testing.T) {
	gobreakerTwoStep, gobreakerExecute := newGobreakerTwoStep(failuresToOpen), newGobreaker(failuresToOpen)
	failsafe, failsafeExecutor := newFailsafe(failuresToOpen), newFailsafeExecutor(failuresToOpen)
	latchfree, latchfreeExecute := newLatchfree(failuresToOpen), newLatchfree(failuresToOpen)
	gobreakers, failsafes, latchfrees := newGobreakerGroup(failuresToOpen), newFailsafeGroup(failuresToOpen), newLatchfreeGroup(failuresToOpen)

	// Each makes a call that returns result, if it is let through, and returns
	// the error that the caller sees.
	for name, c := range map[string]struct {
		call     func(result error) error
		rejected error
	}{
		"gobreaker two-step": {func(result error) error {
			done, err := gobreakerTwoStep.Allow()
			if err != nil {
				return err
			}
			done(result)
			return result
		}, gobreaker.ErrOpenState},
		"gobreaker execute": {func(result error) error {
			_, err := gobreakerExecute.Execute(func() (int, error) { return 0, result })
			return err
		}, gobreaker.ErrOpenState},
		"gobreaker group": {func(result error) error {
			done, err := gobreakers.allow("a")
			if err != nil {
				return err
			}
			done(result)
			return result
		}, gobreaker.ErrOpenState},
		"failsafe": {func(result error) error { return callFailsafe(failsafe, result) }, circuitbreaker.ErrOpen},
		"failsafe executor": {func(result error) error {
			_, err := failsafeExecutor.Get(func() (int, error) { return 0, result })
			return err
		}, circuitbreaker.ErrOpen},
		"failsafe group": {func(result error) error { return callFailsafe(failsafes.of("a"), result) }, circuitbreaker.ErrOpen},
		"latchfree": {func(result error) error {
			permit, err := latchfree.Allow()
			if err != nil {
				return err
			}
			permit.Done(result)
			return result
		}, atomicbreaker.ErrOpen},
		"latchfree execute": {func(result error) error {
			_, err := atomicbreaker.Execute(latchfreeExecute, func() (int, error) { return 0, result })
			return err
		}, atomicbreaker.ErrOpen},
		"latchfree group": {func(result error) error {
			permit, err := latchfrees.Allow("a")
			if err != nil {
				return err
			}
			permit.Done(result)
			return result
		}, atomicbreaker.ErrOpen},
	} {
		t.Run(name, func(t *testing.T) {
			for range failuresToOpen - 1 {
				require.ErrorIs(t, c.call(errCall), errCall)
			}
			require.NoError(t, c.call(nil))
			for range failuresToOpen {
				require.ErrorIs(t, c.call(errCall), errCall)
			}
			assert.ErrorIs(t, c.call(nil), c.rejected)
		})
	}

	// The other keys of a group are not touched.
	_, err := gobreakers.allow("b")
	require.NoError(t, err)
	assert.True(t, failsafes.of("b").TryAcquirePermit())
	_, err = latchfrees.Allow("b")
	require.NoError(t, err)
}

func callFailsafe(breaker circuitbreaker.CircuitBreaker[int], result error) error {
	if !breaker.TryAcquirePermit() {
		return circuitbreaker.ErrOpen
	}
	breaker.RecordError(result)
	return result
}

// Groups keep one breaker for a key, however many ask for it first.
func TestGroupsKeepOneBreaker(t *testing.T) {
	const workers = 4
	gobreakers, failsafes := newGobreakerGroup(workers), newFailsafeGroup(workers)
	together(workers, func(int) {
		if done, err := gobreakers.allow("a"); err == nil {
			done(errCall)
		}
		failsafes.of("a").RecordFailure()
	})
	_, err := gobreakers.allow("a")
	assert.ErrorIs(t, err, gobreaker.ErrOpenState)
	assert.True(t, failsafes.of("a").IsOpen())
}
