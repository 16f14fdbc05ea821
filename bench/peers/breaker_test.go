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
	"github.com/latchfree/latchfree/bench/internal/locked"
)

var errCall = errors.New("call failed")

// never is a number of failures in a row that random ones do not reach, so
// that a breaker stays closed and failures are counted all the time. It is no
// larger because failsafe keeps a bit for each.
const never = 1000

func newLatchfree(failures int) *atomicbreaker.Breaker {
	return atomicbreaker.MustNew(latchfreeConfig(failures))
}

func newLatchfreeGroup(failures int) *atomicbreaker.Group[string] {
	return atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{Default: latchfreeConfig(failures)})
}

func latchfreeConfig(failures int) atomicbreaker.Config {
	return atomicbreaker.Config{Policy: atomicbreaker.Consecutive(failures), OpenTimeout: openTimeout}
}

func lockedConfig(failures int) locked.BreakerConfig {
	return locked.BreakerConfig{Threshold: failures, OpenTimeout: openTimeout, Probes: 1, CloseAfter: 1}
}

// call asks for admission and reports a success or a failure. It reports
// whether it was admitted.
type call func(fail bool) (admitted bool)

// Each of these makes calls through one kind of breaker.

func mutexCall(b *locked.MutexBreaker) call {
	return func(fail bool) bool {
		stay, err := b.Allow()
		if err != nil {
			return false
		}
		if fail {
			b.Failure(stay)
		} else {
			b.Success(stay)
		}
		return true
	}
}

func gobreakerCall(b *gobreaker.TwoStepCircuitBreaker[int]) call {
	return func(fail bool) bool {
		done, err := b.Allow()
		if err != nil {
			return false
		}
		if fail {
			done(errCall)
		} else {
			done(nil)
		}
		return true
	}
}

func failsafeCall(b circuitbreaker.CircuitBreaker[int]) call {
	return func(fail bool) bool {
		if !b.TryAcquirePermit() {
			return false
		}
		if fail {
			b.RecordFailure()
		} else {
			b.RecordSuccess()
		}
		return true
	}
}

func latchfreeCall(b *atomicbreaker.Breaker) call {
	return func(fail bool) bool {
		permit, err := b.Allow()
		if err != nil {
			return false
		}
		if fail {
			permit.Failure()
		} else {
			permit.Success()
		}
		return true
	}
}

// breakers lists what is compared.
var breakers = []struct {
	impl string
	make func(failures int) call
}{
	{"mutex", func(n int) call { return mutexCall(locked.NewMutexBreaker(lockedConfig(n))) }},
	{"gobreaker", func(n int) call { return gobreakerCall(newGobreakerTwoStep(n)) }},
	{"failsafe", func(n int) call { return failsafeCall(newFailsafe(n)) }},
	{"latchfree", func(n int) call { return latchfreeCall(newLatchfree(n)) }},
}

// BenchmarkBreakerCall makes calls through one breaker, of which some fail,
// but never enough in a row to open it. The loop is written out for each
// implementation: a call through a func value would cost as much as ours.
func BenchmarkBreakerCall(b *testing.B) {
	for _, failures := range []int{0, 1, 50} {
		streams := load.Uniform(1, failures)
		run := func(impl string, loop func(*testing.PB, load.Stream) (rejected int)) {
			b.Run(fmt.Sprintf("failures=%d/impl=%s", failures, impl), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					if n := loop(pb, streams.Stream()); n > 0 {
						b.Errorf("%d calls were rejected", n)
					}
				})
			})
		}
		mutex := locked.NewMutexBreaker(lockedConfig(never))
		run("mutex", func(pb *testing.PB, stream load.Stream) (rejected int) {
			for pb.Next() {
				_, fail := stream.Next()
				switch stay, err := mutex.Allow(); {
				case err != nil:
					rejected++
				case fail:
					mutex.Failure(stay)
				default:
					mutex.Success(stay)
				}
			}
			return rejected
		})
		gobreaker := newGobreakerTwoStep(never)
		run("gobreaker", func(pb *testing.PB, stream load.Stream) (rejected int) {
			for pb.Next() {
				_, fail := stream.Next()
				switch done, err := gobreaker.Allow(); {
				case err != nil:
					rejected++
				case fail:
					done(errCall)
				default:
					done(nil)
				}
			}
			return rejected
		})
		// What most users of gobreaker call: Execute of a static function.
		executor := newGobreaker(never)
		run("gobreakerexecute", func(pb *testing.PB, stream load.Stream) (rejected int) {
			for pb.Next() {
				_, fail := stream.Next()
				call := succeed
				if fail {
					call = failing
				}
				if _, err := executor.Execute(call); err != nil && err != errCall {
					rejected++
				}
			}
			return rejected
		})
		failsafe := newFailsafe(never)
		run("failsafe", func(pb *testing.PB, stream load.Stream) (rejected int) {
			for pb.Next() {
				_, fail := stream.Next()
				switch {
				case !failsafe.TryAcquirePermit():
					rejected++
				case fail:
					failsafe.RecordFailure()
				default:
					failsafe.RecordSuccess()
				}
			}
			return rejected
		})
		ours := newLatchfree(never)
		run("latchfree", func(pb *testing.PB, stream load.Stream) (rejected int) {
			for pb.Next() {
				_, fail := stream.Next()
				switch permit, err := ours.Allow(); {
				case err != nil:
					rejected++
				case fail:
					permit.Failure()
				default:
					permit.Success()
				}
			}
			return rejected
		})
	}
}

func succeed() (int, error) { return 1, nil }
func failing() (int, error) { return 0, errCall }

// BenchmarkBreakerReject asks an open breaker.
func BenchmarkBreakerReject(b *testing.B) {
	for _, impl := range breakers {
		b.Run("impl="+impl.impl, func(b *testing.B) {
			call := impl.make(1)
			call(true)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if call(true) {
						b.Error("a call was admitted")
					}
				}
			})
		})
	}
}

// executors lists what makes a call of a function with one result.
var executors = []struct {
	impl string
	make func(failures int) func(func() (int, error)) (int, error)
}{
	{"gobreaker", func(n int) func(func() (int, error)) (int, error) { return newGobreaker(n).Execute }},
	{"failsafe", func(n int) func(func() (int, error)) (int, error) { return newFailsafeExecutor(n).Get }},
	{"latchfree", func(n int) func(func() (int, error)) (int, error) {
		b := newLatchfree(n)
		return func(f func() (int, error)) (int, error) { return atomicbreaker.Execute(b, f) }
	}},
}

// BenchmarkBreakerExecute makes a call with a closure that captures what it
// needs.
func BenchmarkBreakerExecute(b *testing.B) {
	names := load.Names(64)
	run := func(b *testing.B, execute func(name string) (int, error)) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				name := names[i%len(names)]
				if n, err := execute(name); err != nil || n != len(name) {
					b.Error("the call failed")
				}
			}
		})
	}
	b.Run("impl=gobreaker", func(b *testing.B) {
		c := newGobreaker(5)
		run(b, func(name string) (int, error) {
			return c.Execute(func() (int, error) { return len(name), nil })
		})
	})
	b.Run("impl=failsafe", func(b *testing.B) {
		c := newFailsafeExecutor(5)
		run(b, func(name string) (int, error) {
			return c.Get(func() (int, error) { return len(name), nil })
		})
	})
	b.Run("impl=latchfree", func(b *testing.B) {
		c := newLatchfree(5)
		run(b, func(name string) (int, error) {
			return atomicbreaker.Execute(c, func() (int, error) { return len(name), nil })
		})
	})
}

// Each breaker opens at the failure that it is configured for, and a success
// in between starts the count anew.
func TestBreakersOpen(t *testing.T) {
	const failures = 5
	calls := map[string]call{}
	for _, impl := range breakers {
		calls[impl.impl] = impl.make(failures)
	}
	for _, impl := range executors {
		execute := impl.make(failures)
		calls[impl.impl+" function"] = func(fail bool) bool {
			called := false
			v, err := execute(func() (int, error) {
				if called = true; fail {
					return 0, errCall
				}
				return 7, nil
			})
			switch {
			case !called:
				assert.Error(t, err)
			case fail:
				assert.ErrorIs(t, err, errCall)
			default:
				assert.NoError(t, err)
				assert.Equal(t, 7, v)
			}
			return called
		}
	}
	for _, impl := range groups {
		group := impl.make(failures)
		calls[impl.impl+" group"] = func(fail bool) bool {
			assert.True(t, group("other", false), "other keys are not touched")
			return group("a", fail)
		}
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for range failures - 1 {
				require.True(t, call(true))
			}
			require.True(t, call(false))
			for range failures {
				require.True(t, call(true))
			}
			assert.False(t, call(false))
		})
	}
}
