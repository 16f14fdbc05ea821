package peers

import "sync"

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
