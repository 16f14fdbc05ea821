package main

import (
	"context"
	"sync"
	"time"
)

// storming is one report's time under load.
type storming struct {
	*service
	clients int
	during  context.Context // ends when the time is over
	defects defects
	load    *load
}

// load is what the clients have done.
type load struct {
	mu   sync.Mutex
	took []time.Duration // by each operation
}

// timed runs an operation, and notes how long it took.
func (l *load) timed(operation func() error) error {
	began := time.Now()
	err := operation()
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
	return err
}

// together runs f n times at once, and returns the first error.
func together(n int, f func(i int) error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for i := range n {
		wg.Go(func() {
			if err := f(i); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	wg.Wait()
	return first
}
