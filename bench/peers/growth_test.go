package peers

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchfree/latchfree/bench/internal/load"
)

// BenchmarkRegistryGrowth reads or updates 100 keys while another goroutine
// creates a million others. One operation is all of that; what counts is how long
// single reads and updates took, in quantiles, with the two readings of the clock
// around each. B/key is what the heap holds for each key in the end.
func BenchmarkRegistryGrowth(b *testing.B) {
	const hot, grown = 100, 1_000_000
	names := load.Names(hot + grown)
	for _, op := range []string{"read", "update"} {
		for _, impl := range registries {
			b.Run(fmt.Sprintf("op=%s/impl=%s", op, impl.impl), func(b *testing.B) {
				var took []time.Duration
				var held float64
				for range b.N {
					before := inUse()
					r := impl.make()
					create(b, r, names[:hot])
					var done atomic.Bool
					go func() {
						create(b, r, names[hot:])
						done.Store(true)
					}()
					for i := 0; !done.Load(); i++ {
						name := names[i%hot]
						start := time.Now()
						if op == "read" {
							if _, ok := r.Get(name); !ok {
								b.Error("a key is missing")
							}
						} else if _, err := r.Update(name, run); err != nil {
							b.Error(err)
						}
						took = append(took, time.Since(start))
					}
					held += float64(inUse()-before-uint64(cap(took)*8)) / (hot + grown)
					runtime.KeepAlive(r)
				}
				slices.Sort(took)
				for _, q := range []float64{0.5, 0.99, 0.999, 0.9999} {
					b.ReportMetric(float64(took[int(q*float64(len(took)))]), fmt.Sprintf("p%v-ns", 100*q))
				}
				b.ReportMetric(held/float64(b.N), "B/key")
			})
		}
	}
}

func create(b *testing.B, r registry, names []string) {
	for _, name := range names {
		if _, err := r.Create(name, action{Name: name}); err != nil {
			b.Error(err)
			return
		}
	}
}

// inUse returns the bytes of the heap that are reachable.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
