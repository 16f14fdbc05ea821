package bench

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
)

// never is a threshold that random failures do not reach, so that a breaker
// stays closed and failures are counted all the time.
const never = 1 << 30

// breaker is one implementation. Call asks for admission and reports a
// success or a failure; it reports whether the call was admitted.
type breaker struct {
	impl string
	call func(fail bool) (admitted bool)
}

// lockedBreaker is what the locked ones have in common. They are called
// through it, and ours directly; the difference is far below their cost.
type lockedBreaker interface {
	Allow() (uint64, error)
	Success(uint64) atomicbreaker.Verdict
	Failure(uint64) atomicbreaker.Verdict
}

func breakers(threshold int) []breaker {
	cfg := locked.BreakerConfig{Threshold: threshold, OpenTimeout: time.Hour, Probes: 1, CloseAfter: 1}
	ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(threshold), OpenTimeout: time.Hour})
	return []breaker{
		lockedCalls("mutex", locked.NewMutexBreaker(cfg)),
		lockedCalls("rwmutex", locked.NewRWMutexBreaker(cfg)),
		{"latchfree", func(fail bool) bool {
			p, err := ours.Allow()
			if err != nil {
				return false
			}
			if fail {
				p.Failure()
			} else {
				p.Success()
			}
			return true
		}},
	}
}

func lockedCalls(impl string, b lockedBreaker) breaker {
	return breaker{impl, func(fail bool) bool {
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
	}}
}

// BenchmarkBreakerCall makes calls through one breaker, of which some fail,
// but never enough in a row to open it. The loop is written out for each
// implementation: a call through a func value would cost as much as ours.
func BenchmarkBreakerCall(b *testing.B) {
	cfg := locked.BreakerConfig{Threshold: never, OpenTimeout: time.Hour, Probes: 1, CloseAfter: 1}
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
		mutex := locked.NewMutexBreaker(cfg)
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
		rwmutex := locked.NewRWMutexBreaker(cfg)
		run("rwmutex", func(pb *testing.PB, stream load.Stream) (rejected int) {
			for pb.Next() {
				_, fail := stream.Next()
				switch stay, err := rwmutex.Allow(); {
				case err != nil:
					rejected++
				case fail:
					rwmutex.Failure(stay)
				default:
					rwmutex.Success(stay)
				}
			}
			return rejected
		})
		ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(never), OpenTimeout: time.Hour})
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

// BenchmarkBreakerReject asks an open breaker.
func BenchmarkBreakerReject(b *testing.B) {
	for _, c := range breakers(1) {
		b.Run("impl="+c.impl, func(b *testing.B) {
			c.call(true)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if c.call(true) {
						b.Error("a call was admitted")
					}
				}
			})
		})
	}
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
	b.Run("impl=mutex", func(b *testing.B) {
		c := locked.NewMutexBreaker(locked.BreakerConfig{Threshold: 5, OpenTimeout: time.Hour, Probes: 1, CloseAfter: 1})
		run(b, func(name string) (int, error) {
			return lockedExecute(c, func() (int, error) { return len(name), nil })
		})
	})
	b.Run("impl=latchfree", func(b *testing.B) {
		c := new(atomicbreaker.Breaker)
		run(b, func(name string) (int, error) {
			return atomicbreaker.Execute(c, func() (int, error) { return len(name), nil })
		})
	})
}

// lockedExecute is Execute for a locked breaker: what panics has failed.
func lockedExecute[T any](c *locked.MutexBreaker, fn func() (T, error)) (v T, err error) {
	stay, err := c.Allow()
	if err != nil {
		return v, err
	}
	failed := true
	defer func() {
		if failed {
			c.Failure(stay)
		}
	}()
	if v, err = fn(); err == nil {
		failed = false
		c.Success(stay)
	}
	return v, err
}

// group is one implementation of a breaker for every name.
type group struct {
	impl string
	call func(name string, fail bool) (admitted bool)
}

type lockedGroup interface {
	Allow(string) (uint64, error)
	Success(string, uint64) atomicbreaker.Verdict
	Failure(string, uint64) atomicbreaker.Verdict
}

// groups lists what is compared. All but one have generations, probes and
// leases; "report" are the bare counters of the defect report's own fix.
func groups(threshold int) []group {
	cfg := locked.BreakerConfig{Threshold: threshold, OpenTimeout: time.Hour, Probes: 1, CloseAfter: 1}
	ours := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(threshold), OpenTimeout: time.Hour},
	})
	report := locked.NewMutexCounters(threshold)
	return []group{
		lockedGroupCalls("mutex", locked.NewMutexGroup[string](cfg)),
		lockedGroupCalls("rwmutex", locked.NewRWMutexGroup[string](cfg)),
		lockedGroupCalls("syncmap", locked.NewSyncMapGroup[string](cfg)),
		{"report", func(name string, fail bool) bool {
			if report.IsOpen(name) {
				return false
			}
			if fail {
				report.RecordFailure(name)
			} else {
				report.RecordSuccess(name)
			}
			return true
		}},
		{"latchfree", func(name string, fail bool) bool {
			p, err := ours.Allow(name)
			if err != nil {
				return false
			}
			if fail {
				p.Failure()
			} else {
				p.Success()
			}
			return true
		}},
	}
}

func lockedGroupCalls(impl string, g lockedGroup) group {
	return group{impl, func(name string, fail bool) bool {
		stay, err := g.Allow(name)
		if err != nil {
			return false
		}
		if fail {
			g.Failure(name, stay)
		} else {
			g.Success(name, stay)
		}
		return true
	}}
}

// BenchmarkBreakerGroupCall makes calls for many names that succeed. Some
// names are open, and their calls are rejected.
func BenchmarkBreakerGroupCall(b *testing.B) {
	for _, p := range []struct{ keys, openPercent int }{{1000, 0}, {1000, 1}, {100_000, 1}} {
		names, streams := load.Names(p.keys), load.Uniform(p.keys, 0)
		every := 0
		if p.openPercent > 0 {
			every = 100 / p.openPercent
		}
		isOpen := func(key int) bool { return every > 0 && key%every == 0 }
		for _, g := range groups(1) {
			b.Run(fmt.Sprintf("keys=%d/open=%d/impl=%s", p.keys, p.openPercent, g.impl), func(b *testing.B) {
				for i, name := range names {
					if isOpen(i) {
						g.call(name, true)
					}
				}
				runtime.GC() // what filling has left behind is not part of the measurement
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						if key, _ := stream.Next(); g.call(names[key], false) == isOpen(key) {
							b.Error("a call was rejected that should be admitted, or the other way round")
						}
					}
				})
			})
		}
	}
}

// BenchmarkBreakerGroupMix makes calls for many names, of which some fail, but
// never enough in a row to open one. A failure is followed by a success of the
// name sooner or later, so names come and go.
func BenchmarkBreakerGroupMix(b *testing.B) {
	for _, failures := range []int{1, 10} {
		names, streams := load.Names(1000), load.Uniform(1000, failures)
		for _, g := range groups(never) {
			if g.impl == "report" {
				continue // adds nothing to BreakerGroupCall
			}
			b.Run(fmt.Sprintf("keys=1000/failures=%d/impl=%s", failures, g.impl), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						if key, fail := stream.Next(); !g.call(names[key], fail) {
							b.Error("a call was rejected")
						}
					}
				})
			})
		}
	}
}

// counters is what the report's service calls.
type counters interface {
	IsOpen(string) bool
	RecordSuccess(string)
	RecordFailure(string)
}

// ourCounters gives a Group the counters' signatures.
type ourCounters struct{ atomicbreaker.Group[string] }

func (c *ourCounters) RecordSuccess(name string) { c.Group.RecordSuccess(name) }
func (c *ourCounters) RecordFailure(name string) { c.Group.RecordFailure(name) }

// BenchmarkBreakerGroupRecord asks and reports as the service of the defect
// report does, without permits: is it open, then success or failure.
func BenchmarkBreakerGroupRecord(b *testing.B) {
	for _, failures := range []int{0, 1} {
		names, streams := load.Names(1000), load.Uniform(1000, failures)
		for _, c := range []struct {
			impl string
			make func() counters
		}{
			{"mutex", func() counters { return locked.NewMutexCounters(5) }},
			{"rwmutex", func() counters { return locked.NewRWMutexCounters(5) }},
			{"syncmap", func() counters { return locked.NewSyncMapCounters(5) }},
			{"latchfree", func() counters { return new(ourCounters) }},
		} {
			b.Run(fmt.Sprintf("keys=1000/failures=%d/impl=%s", failures, c.impl), func(b *testing.B) {
				c := c.make()
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						key, fail := stream.Next()
						switch {
						case c.IsOpen(names[key]):
							c.RecordSuccess(names[key]) // the operator steps in
						case fail:
							c.RecordFailure(names[key])
						default:
							c.RecordSuccess(names[key])
						}
					}
				})
			})
		}
	}
}
