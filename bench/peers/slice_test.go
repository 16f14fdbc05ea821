package peers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/cowchangeset"
)

// sharedSlice is what the scenarios use of a slice that can be shared.
type sharedSlice interface {
	Load() []uint64
	Append(...uint64) int
}

// BenchmarkSliceLoad reads the last of many items.
func BenchmarkSliceLoad(b *testing.B) {
	const items = 1000
	fill := func(s sharedSlice) {
		for i := range uint64(items) {
			s.Append(i)
		}
	}
	compare(b, fmt.Sprintf("items=%d/", items),
		contender{"mutex", func(b *testing.B) func(*testing.PB) {
			s := new(locked.MutexSlice[uint64])
			fill(s)
			return func(pb *testing.PB) {
				for pb.Next() {
					if all := s.Load(); all[len(all)-1] != items-1 {
						b.Error("wrong item")
						return
					}
				}
			}
		}},
		contender{"cow", func(b *testing.B) func(*testing.PB) {
			s := new(cowSlice[uint64])
			fill(s)
			return func(pb *testing.PB) {
				for pb.Next() {
					if all := s.Load(); all[len(all)-1] != items-1 {
						b.Error("wrong item")
						return
					}
				}
			}
		}},
		contender{"latchfree", func(b *testing.B) func(*testing.PB) {
			s := new(cowchangeset.Slice[uint64])
			fill(s)
			return func(pb *testing.PB) {
				for pb.Next() {
					if all := s.Load(); all[len(all)-1] != items-1 {
						b.Error("wrong item")
						return
					}
				}
			}
		}},
	)
}

// BenchmarkSliceGrow appends to an empty slice, item by item. One operation is
// all of them.
func BenchmarkSliceGrow(b *testing.B) {
	for _, items := range []int{100, 1000} {
		compare(b, fmt.Sprintf("items=%d/", items),
			contender{"mutex", func(*testing.B) func(*testing.PB) {
				return func(pb *testing.PB) {
					for pb.Next() {
						s := new(locked.MutexSlice[uint64])
						for i := range items {
							s.Append(uint64(i))
						}
					}
				}
			}},
			contender{"cow", func(*testing.B) func(*testing.PB) {
				return func(pb *testing.PB) {
					for pb.Next() {
						s := new(cowSlice[uint64])
						for i := range items {
							s.Append(uint64(i))
						}
					}
				}
			}},
			contender{"latchfree", func(*testing.B) func(*testing.PB) {
				return func(pb *testing.PB) {
					for pb.Next() {
						s := new(cowchangeset.Slice[uint64])
						for i := range items {
							s.Append(uint64(i))
						}
					}
				}
			}},
		)
	}
}

func TestSlicesLoseNoItem(t *testing.T) {
	const workers, each = 4, 500
	for impl, s := range map[string]sharedSlice{
		"mutex":     new(locked.MutexSlice[uint64]),
		"cow":       new(cowSlice[uint64]),
		"latchfree": new(cowchangeset.Slice[uint64]),
	} {
		t.Run(impl, func(t *testing.T) {
			assert.Empty(t, s.Load())
			together(workers, func(worker int) {
				for i := range each {
					item := uint64(worker*each + i)
					if at := s.Append(item); s.Load()[at] != item {
						t.Error("an item is not where Append said")
					}
				}
			})
			seen := map[uint64]bool{}
			for _, item := range s.Load() {
				seen[item] = true
			}
			assert.Len(t, seen, workers*each)
		})
	}
}
