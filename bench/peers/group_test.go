package peers

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
)

// groups lists what has a breaker for every key.
var groups = []struct {
	impl string
	make func(failures int) func(key string, fail bool) (admitted bool)
}{
	{"mutex", func(n int) func(string, bool) bool {
		g := locked.NewMutexGroup[string](lockedConfig(n))
		return func(key string, fail bool) bool {
			stay, err := g.Allow(key)
			if err != nil {
				return false
			}
			if fail {
				g.Failure(key, stay)
			} else {
				g.Success(key, stay)
			}
			return true
		}
	}},
	{"gobreaker", func(n int) func(string, bool) bool {
		g := newGobreakerGroup(n)
		return func(key string, fail bool) bool {
			done, err := g.of(key).Allow()
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
	}},
	{"failsafe", func(n int) func(string, bool) bool {
		g := newFailsafeGroup(n)
		return func(key string, fail bool) bool {
			b := g.of(key)
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
	}},
	{"latchfree", func(n int) func(string, bool) bool {
		g := newLatchfreeGroup(n)
		return func(key string, fail bool) bool {
			permit, err := g.Allow(key)
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
	}},
}

// BenchmarkBreakerGroupCall makes calls for many names that succeed. Some
// names are open, and their calls are rejected. Every name was asked for
// before, so that the peers have made its breaker.
func BenchmarkBreakerGroupCall(b *testing.B) {
	for _, p := range []struct{ keys, openPercent int }{{1000, 0}, {1000, 1}, {100_000, 0}, {100_000, 1}} {
		names, streams := load.Names(p.keys), load.Uniform(p.keys, 0)
		every := 0
		if p.openPercent > 0 {
			every = 100 / p.openPercent
		}
		isOpen := func(key int) bool { return every > 0 && key%every == 0 }
		for _, impl := range groups {
			filled := sync.OnceValue(func() func(string, bool) bool {
				call := impl.make(1)
				for i, name := range names {
					call(name, isOpen(i))
				}
				return call
			})
			b.Run(fmt.Sprintf("keys=%d/open=%d/impl=%s", p.keys, p.openPercent, impl.impl), func(b *testing.B) {
				call := filled()
				runtime.GC() // what filling has left behind is not part of the measurement
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						if key, _ := stream.Next(); call(names[key], false) == isOpen(key) {
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
// name sooner or later, so names come and go in ours and stay in the others.
func BenchmarkBreakerGroupMix(b *testing.B) {
	for _, failures := range []int{1, 10} {
		names, streams := load.Names(1000), load.Uniform(1000, failures)
		for _, impl := range groups {
			filled := sync.OnceValue(func() func(string, bool) bool {
				call := impl.make(never)
				for _, name := range names {
					call(name, false)
				}
				return call
			})
			b.Run(fmt.Sprintf("keys=1000/failures=%d/impl=%s", failures, impl.impl), func(b *testing.B) {
				call := filled()
				runtime.GC() // as above
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					stream := streams.Stream()
					for pb.Next() {
						if key, fail := stream.Next(); !call(names[key], fail) {
							b.Error("a call was rejected")
						}
					}
				})
			})
		}
	}
}

// Groups keep one breaker for a key, however many ask for it first.
func TestGroupsKeepOneBreaker(t *testing.T) {
	const workers = 4
	for _, impl := range groups {
		t.Run(impl.impl, func(t *testing.T) {
			call := impl.make(workers)
			together(workers, func(int) { call("a", true) })
			assert.False(t, call("a", true))
		})
	}
}
