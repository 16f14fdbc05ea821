package peers

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
)

// sharedSlice is what the scenarios use of a slice.
type sharedSlice interface {
	Load() []string
	Append(...string) int
}

var slicesCompared = []struct {
	impl    string
	make    func() sharedSlice
	maxSize int // beyond which one Append would take milliseconds; 0 means none
}{
	{"mutex", func() sharedSlice { return new(locked.MutexSlice[string]) }, 0},
	{"cow", func() sharedSlice { return new(cowSlice[string]) }, 1_000},
	{"latchfree", func() sharedSlice { return new(cowchangeset.Slice[string]) }, 0},
}

// BenchmarkSliceLoad does one Load and reads one item.
func BenchmarkSliceLoad(b *testing.B) {
	hosts := load.Names(1000)
	streams := load.Uniform(len(hosts), 0)
	for _, impl := range slicesCompared {
		b.Run("items=1000/impl="+impl.impl, func(b *testing.B) {
			s := impl.make()
			s.Append(hosts...)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					i, _ := stream.Next()
					if s.Load()[i] == "" {
						b.Error("an empty item")
					}
				}
			})
		})
	}
}

// BenchmarkSliceAppend does one Append to a slice that grows from empty to the
// given size, and then starts anew.
func BenchmarkSliceAppend(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		hosts := load.Names(size)
		for _, impl := range slicesCompared {
			if impl.maxSize != 0 && size > impl.maxSize {
				continue
			}
			b.Run(fmt.Sprintf("size=%d/impl=%s", size, impl.impl), func(b *testing.B) {
				var now atomic.Pointer[sharedSlice]
				renew := func() {
					s := impl.make()
					now.Store(&s)
				}
				renew()
				var next atomic.Uint32
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					at := int(next.Add(1)) * 7919
					for pb.Next() {
						at++
						if (*now.Load()).Append(hosts[at%size]) == size-1 {
							renew()
						}
					}
				})
			})
		}
	}
}

func TestSlicesLoseNoItem(t *testing.T) {
	const workers, each = 4, 500
	names := load.Names(workers * each)
	for _, impl := range slicesCompared {
		t.Run(impl.impl, func(t *testing.T) {
			s := impl.make()
			assert.Empty(t, s.Load())
			together(workers, func(worker int) {
				for i := range each {
					item := names[worker*each+i]
					if at := s.Append(item); s.Load()[at] != item {
						t.Error("an item is not where Append said")
					}
				}
			})
			assert.ElementsMatch(t, names, s.Load())
		})
	}
}
