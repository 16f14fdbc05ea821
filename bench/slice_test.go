package bench

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
)

// sliceImpls lists what is compared. copy is the copy-on-write idiom of package
// sync/atomic's documentation: an atomic pointer, and writers that copy all
// under a mutex.
var sliceImpls = []struct {
	impl string
	make func() locked.Slice[string]
}{
	{"latchfree", func() locked.Slice[string] { return new(cowchangeset.Slice[string]) }},
	{"mutex", func() locked.Slice[string] { return new(locked.MutexSlice[string]) }},
	{"rwmutex", func() locked.Slice[string] { return new(locked.RWMutexSlice[string]) }},
	{"copy", func() locked.Slice[string] { return new(locked.CopySlice[string]) }},
}

// One operation is one Load and the read of one item.
func BenchmarkSliceLoad(b *testing.B) {
	hosts := load.Names(1000)
	streams := load.Uniform(len(hosts), 0)
	for _, impl := range sliceImpls {
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

// One operation is one Load on one goroutine, without a table of
// implementations, so that the call can be inlined. impl=pointer is the floor:
// an atomic pointer to a slice that nobody ever replaces.
func BenchmarkSliceLoadInlined(b *testing.B) {
	hosts := load.Names(1000)
	n := 0
	b.Run("items=1000/impl=latchfree", func(b *testing.B) {
		var s cowchangeset.Slice[string]
		s.Append(hosts...)
		for b.Loop() {
			n += len(s.Load())
		}
	})
	b.Run("items=1000/impl=mutex", func(b *testing.B) {
		var s locked.MutexSlice[string]
		s.Append(hosts...)
		for b.Loop() {
			n += len(s.Load())
		}
	})
	b.Run("items=1000/impl=pointer", func(b *testing.B) {
		var s atomic.Pointer[[]string]
		s.Store(&hosts)
		for b.Loop() {
			n += len(*s.Load())
		}
	})
	if n == 0 {
		b.Error("nothing was loaded")
	}
}

// One operation is one Append to a slice that grows from empty to the given
// size, and then starts anew.
func BenchmarkSliceAppend(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		hosts := load.Names(size)
		for _, impl := range sliceImpls {
			if impl.impl == "copy" && size > 1_000 {
				continue // quadratic: the average Append copies 50,000 string headers
			}
			b.Run(fmt.Sprintf("size=%d/impl=%s", size, impl.impl), func(b *testing.B) {
				var now atomic.Pointer[locked.Slice[string]]
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

// One operation is one Load or, for one in a hundred, one Append to a slice
// that starts anew at 10,000 items.
func BenchmarkSliceReadMostly(b *testing.B) {
	const size = 10_000
	hosts := load.Names(size)
	streams := load.Uniform(size, 1)
	for _, impl := range sliceImpls {
		b.Run("writes=1/impl="+impl.impl, func(b *testing.B) {
			var now atomic.Pointer[locked.Slice[string]]
			renew := func() {
				s := impl.make()
				s.Append(hosts[0])
				now.Store(&s)
			}
			renew()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					i, write := stream.Next()
					s := *now.Load()
					if !write {
						if items := s.Load(); items[i%len(items)] == "" {
							b.Error("an empty item")
						}
					} else if s.Append(hosts[i]) == size-1 {
						renew()
					}
				}
			})
		})
	}
}

// One operation is one item seen by a loop over a slice of 10,000.
func BenchmarkSliceIterate(b *testing.B) {
	const size = 10_000
	hosts := load.Names(size)
	for _, impl := range sliceImpls {
		b.Run(fmt.Sprintf("items=%d/impl=%s", size, impl.impl), func(b *testing.B) {
			s := impl.make()
			s.Append(hosts...)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				more := pb.Next()
				for more {
					for _, v := range s.Load() {
						if v == "" {
							b.Error("an empty item")
						}
						if more = pb.Next(); !more {
							break
						}
					}
				}
			})
		})
	}
}
