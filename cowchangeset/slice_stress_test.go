//go:build !modelcheck

package cowchangeset_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Appenders, updaters and readers: nothing is lost, nothing goes back, and what
// was loaded never changes.
func TestStressSlice(t *testing.T) {
	const writers, each = 3, 200
	for range rounds(100) {
		var s cowchangeset.Slice[*entry]
		var updates, left atomic.Int64
		left.Store(writers)
		crew := newCrew()
		for w := range writers {
			crew.add(func() {
				defer left.Add(-1)
				for k := range each {
					e := &entry{w, k}
					if rand.IntN(2) == 0 {
						s.Append(e)
					} else {
						s.AppendSlowly(e, stumble)
					}
					switch rand.IntN(20) {
					case 0:
						s.Update(func(old []*entry) []*entry { stumble(); return slices.Clone(old) })
						updates.Add(1)
					case 1:
						if old := s.Snapshot(); s.CompareAndSwap(old, slices.Collect(iterValues(old))) {
							updates.Add(1)
						}
					}
				}
			})
		}
		crew.add(func() {
			version, length := uint64(0), 0
			for ; left.Load() > 0; stumble() {
				snap := s.Snapshot()
				if snap.Version() < version || snap.Len() < length {
					t.Errorf("from version %d, length %d to %d, %d", version, length, snap.Version(), snap.Len())
					return
				}
				version, length = snap.Version(), snap.Len()
				var next [writers]int
				for _, e := range snap.All() {
					if e == nil || e.k != next[e.writer] {
						t.Errorf("%v out of order", e)
						return
					}
					next[e.writer]++
				}
			}
		})
		crew.run()
		if got, want := s.Snapshot(), writers*each; got.Len() != want || got.Version() != uint64(want)+uint64(updates.Load()) {
			t.Fatalf("%d items, version %d, after %d appends and %d updates", got.Len(), got.Version(), want, updates.Load())
		}
	}
}

func iterValues[T any](s cowchangeset.Snapshot[T]) func(func(T) bool) {
	return func(yield func(T) bool) {
		for _, v := range s.All() {
			if !yield(v) {
				return
			}
		}
	}
}
