package bench

import (
	"fmt"
	"iter"
	"slices"
	"testing"
)

// copyTracker copies under its mutex what it lets others see.
type copyTracker struct{ mutexTracker }

func (t *copyTracker) cut() (int, iter.Seq2[uint64, change]) {
	entries := t.Current().Copy()
	return len(entries), func(yield func(uint64, change) bool) {
		for i, e := range entries {
			if !yield(uint64(i), e) {
				return
			}
		}
	}
}

// One operation is a cut of a changeset, and a look at its first entry.
func BenchmarkTrackerCut(b *testing.B) {
	all := changes()
	impls := append(slices.Clip(recorders), struct {
		impl string
		make func() recorder
	}{"copy", func() recorder { return new(copyTracker) }})
	for _, entries := range []int{10, 100_000} {
		for _, impl := range impls {
			var r recorder // made once, however often the function runs
			b.Run(fmt.Sprintf("entries=%d/impl=%s", entries, impl.impl), func(b *testing.B) {
				if r == nil {
					r = impl.make()
					r.start()
					for n := 0; n < entries; n += len(all) {
						if _, err := r.RecordBatch(all[:min(len(all), entries-n)]); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						n, cut := r.cut()
						for _, e := range cut {
							if n != entries || e != all[0] {
								b.Errorf("%d entries, the first is %v", n, e)
							}
							break
						}
					}
				})
			})
		}
	}
}
