package peers

import (
	"runtime"
	"sync"
	"testing"
)

// contender is one implementation of a scenario. Start prepares it and returns
// the loop of one goroutine. The loop calls the implementation directly: an
// interface between them would cost as much as some of what is measured.
type contender struct {
	impl  string
	start func(b *testing.B) func(pb *testing.PB)
}

// compare runs the contenders as sub-benchmarks; params is "" or ends in a
// slash.
func compare(b *testing.B, params string, contenders ...contender) {
	for _, c := range contenders {
		b.Run(params+"impl="+c.impl, func(b *testing.B) {
			loop := c.start(b)
			runtime.GC() // what starting has left behind is not part of the measurement
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(loop)
		})
	}
}

// together runs f on n goroutines, which start at once, and waits for them.
func together(n int, f func(worker int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for worker := range n {
		wg.Go(func() {
			<-start
			f(worker)
		})
	}
	close(start)
	wg.Wait()
}
