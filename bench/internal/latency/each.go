package latency

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"github.com/latchfree/latchfree/bench/internal/load"
)

// Candidate is one implementation. Make makes a filled one and its operation.
type Candidate struct {
	Impl string
	Make func() Op
}

// Idle is the floor: it does nothing, so that its quantiles are those of the clock and of
// the scheduler.
var Idle = Candidate{"idle", func() Op { return func(int, int) bool { return true } }}

// baseline is the first candidate.
const baseline = "mutex"

// Done returns true, if the operation has done its work: what fails is no
// operation, and a benchmark that left it out would say nothing.
func Done(ok bool) bool {
	if !ok {
		panic("an operation fails")
	}
	return true
}

// share of the mutex's capacity at which open loops ask, of all implementations
// alike. It leaves the mutex time to catch up after what takes long.
const share = 0.25

// Pattern is a way to ask.
type Pattern struct {
	Name  string
	Times int // as many goroutines as processors, times this
	Open  bool
}

// The patterns.
var (
	Closed1 = Pattern{"load=closed/threads=1x", 1, false}
	Closed4 = Pattern{"load=closed/threads=4x", 4, false}
	Open1   = Pattern{"load=open/threads=1x", 1, true}
	Open4   = Pattern{"load=open/threads=4x", 4, true}

	// Paced is far from any capacity, so that goroutines sleep in between.
	Paced = Pattern{"load=paced/threads=4x", 4, true}

	Steady = []Pattern{Closed1, Closed4, Open1, Open4}
)

// PerSecond is how many operations come in a second if they are paced.
const PerSecond = 5000

// Threads returns the number of goroutines.
func (p Pattern) Threads() int { return p.Times * runtime.GOMAXPROCS(0) }

// Window returns the time of one iteration, at least the shortest.
func Window(shortest time.Duration) time.Duration {
	d, err := time.ParseDuration(flag.Lookup("test.benchtime").Value.String())
	if err != nil {
		return shortest // -benchtime 1x
	}
	return max(d, shortest)
}

// Each measures the candidates in each pattern. The first is the mutex, whose capacity is
// what open loops ask a share of; it is found in each process, before the measurement.
func Each(b *testing.B, patterns []Pattern, shortest time.Duration, candidates ...Candidate) {
	for _, p := range patterns {
		for _, c := range candidates {
			b.Run(p.Name+"/impl="+c.Impl, func(b *testing.B) {
				if candidates[0].Impl != baseline {
					b.Fatalf("the first candidate is %s", candidates[0].Impl)
				}
				rate := 0.0
				if p.Open {
					rate = share * Capacity(p.Threads(), 10*time.Millisecond, candidates[0].Make())
				}
				op := c.Make()
				all := New()
				runtime.GC() // what filling has left behind is not part of the measurement
				b.ResetTimer()
				for range b.N {
					if p.Open {
						all.Merge(Open(p.Threads(), Window(shortest), rate, op))
					} else {
						all.Merge(Closed(p.Threads(), Window(shortest), op))
					}
				}
				Report(b, all)
			})
		}
	}
}

// Shortest is the least window of most benchmarks.
const Shortest = 5 * time.Millisecond

// Report adds quantiles to the result, where enough operations lie beyond.
func Report(b *testing.B, h *Histogram) {
	for _, q := range []struct {
		unit string
		of   float64
	}{{"p50-ns", 0.5}, {"p90-ns", 0.9}, {"p99-ns", 0.99}, {"p99.9-ns", 0.999}, {"p99.99-ns", 0.9999}} {
		if d, known := h.Quantile(q.of); known {
			b.ReportMetric(float64(d), q.unit)
		}
	}
	b.ReportMetric(float64(h.Max()), "max-ns")
	b.ReportMetric(float64(h.Count())/b.Elapsed().Seconds(), "ops/s")
}

// StreamsFor returns one stream for each worker, each on cache lines of its own.
func StreamsFor(s *load.Streams) func(worker int) *load.Stream {
	type padded struct {
		load.Stream
		_ [128]byte
	}
	all := make([]padded, 4*runtime.GOMAXPROCS(0))
	for i := range all {
		all[i].Stream = s.Stream()
	}
	return func(worker int) *load.Stream { return &all[worker].Stream }
}
