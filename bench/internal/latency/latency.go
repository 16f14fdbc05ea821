// Package latency measures how long single operations take, and keeps all of
// them in a histogram: a mean hides the calls that wait.
//
// A closed loop asks as fast as it is answered. An open loop asks at a fixed
// rate, as the users of a service do, and measures from the moment at which a
// call should have begun: calls that stand in a queue behind a slow one count
// as slow (no coordinated omission).
package latency

import (
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Op is one operation of a worker, its i-th. It reports whether its time
// counts: that of the calls that run slow code of the user themselves does not.
type Op func(worker, i int) (counts bool)

// Histogram holds times from 1 ns to a minute, with three digits.
type Histogram struct{ h *hdrhistogram.Histogram }

// New returns an empty histogram.
func New() *Histogram { return &Histogram{hdrhistogram.New(1, int64(time.Minute), 3)} }

// Add counts one operation.
func (h *Histogram) Add(d time.Duration) {
	_ = h.h.RecordValue(int64(min(max(d, 1), time.Minute))) // in range, so no error
}

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) { h.h.Merge(other.h) }

// Count returns the number of operations.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Max returns the longest.
func (h *Histogram) Max() time.Duration { return time.Duration(h.h.Max()) }

// beyond is how many operations must lie beyond a quantile for it to be known.
const beyond = 5

// Quantile returns the time within which a share q of the operations ended. It
// is not known if too few lie beyond.
func (h *Histogram) Quantile(q float64) (d time.Duration, known bool) {
	const slack = 1e-6 // 1-0.9999 is not quite 0.0001
	if float64(h.Count())*(1-q)+slack < beyond {
		return 0, false
	}
	return time.Duration(h.h.ValueAtQuantile(q * 100)), true
}

// Closed runs op on so many goroutines for the length of the window, each
// beginning the next when one ends.
func Closed(threads int, window time.Duration, op Op) *Histogram {
	return workers(threads, func(worker int, h *Histogram, begin time.Time) {
		for i := 0; ; i++ {
			from := time.Since(begin)
			counts := op(worker, i)
			to := time.Since(begin)
			if counts {
				h.Add(to - from)
			}
			if to >= window {
				return
			}
		}
	})
}

// Open runs op on so many goroutines for the length of the window, perSecond
// operations in all at even distances. If they cannot be done in twice the
// window, then those that are left count with the time that they have waited.
// What is due while a worker runs an operation that does not count would in a
// service have a goroutine of its own: the worker goes on from then.
func Open(threads int, window time.Duration, perSecond float64, op Op) *Histogram {
	interval := time.Duration(float64(threads) * float64(time.Second) / perSecond)
	interval = max(interval, 1)
	spin := threads <= runtime.GOMAXPROCS(0)
	return workers(threads, func(worker int, h *Histogram, begin time.Time) {
		due := interval * time.Duration(worker) / time.Duration(threads)
		for i := 0; due < window; i++ {
			now := time.Since(begin)
			for now < due {
				if due-now > asleep {
					Wait(due - now)
				} else if !spin {
					runtime.Gosched()
				}
				now = time.Since(begin)
			}
			if now > 2*window {
				h.Add(now - due)
			} else if op(worker, i) {
				h.Add(time.Since(begin) - due)
			} else {
				due = max(due, time.Since(begin)-interval)
			}
			due += interval
		}
	})
}

// asleep is how long a worker must have nothing to do to give its processor back.
const asleep = 100 * time.Microsecond

// Capacity returns how many operations a second a closed loop makes.
func Capacity(threads int, window time.Duration, op Op) float64 {
	began := time.Now()
	n := Closed(threads, window, op).Count()
	return max(float64(n), 1) / time.Since(began).Seconds()
}

// workers runs f on so many goroutines, which begin together.
func workers(threads int, f func(worker int, h *Histogram, begin time.Time)) *Histogram {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	var begin time.Time
	parts := make([]*Histogram, threads)
	ready.Add(threads)
	for worker := range threads {
		parts[worker] = New()
		done.Go(func() {
			ready.Done()
			<-start
			f(worker, parts[worker], begin)
		})
	}
	ready.Wait()
	begin = time.Now()
	close(start)
	done.Wait()
	all := New()
	for _, part := range parts {
		all.Merge(part)
	}
	return all
}

// Burst starts so many goroutines at once, again and again for the length of the
// window, and measures each from the start of its burst to its end.
func Burst(goroutines int, window time.Duration, op func(burst int)) *Histogram {
	all := New()
	ends := make([]time.Duration, goroutines)
	began := time.Now()
	for burst := 0; burst == 0 || time.Since(began) < window; burst++ {
		var done sync.WaitGroup
		start := time.Now()
		for g := range goroutines {
			done.Go(func() {
				op(burst)
				ends[g] = time.Since(start)
			})
		}
		done.Wait()
		for _, end := range ends {
			all.Add(end)
		}
	}
	return all
}

// Burn keeps the processor for d, as code does that computes.
func Burn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// Wait takes d without the processor, as code does that waits for others.
func Wait(d time.Duration) { <-time.After(d) }
