package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// storming is one report's time under load.
type storming struct {
	*service
	clients int
	phase   string
	told    *receipts
	during  context.Context // ends when the time is over
	back    <-chan struct{} // closed when no replica is away any more
	defects defects
	load    *load
}

// at returns the replica that a client talks to.
func (l *storming) at(client int) *api.Client { return l.replicas[client%len(l.replicas)] }

// clustered reports whether there are several replicas, of which one may be killed.
func (l *storming) clustered() bool { return len(l.replicas) > 1 }

// each lets f run for each replica, all at once.
func (l *storming) each(f func(replica int) error) error { return together(len(l.replicas), f) }

// isLost reports whether a client of a cluster cannot know what became of its request: its
// replica was killed, or the replicas had no majority.
func (l *storming) isLost(err error) bool {
	var answer *api.Error
	var bad wrong
	return err != nil && l.clustered() && !errors.As(err, &bad) && !errors.Is(err, context.DeadlineExceeded) && // which nobody waits for
		(!errors.As(err, &answer) || answer.Code == api.CodeUnavailable || answer.Code == api.CodeUnknown || answer.Code == api.CodeStopping)
}

// defect counts defects.
func (l *storming) defect(kind string, n int) {
	l.load.mu.Lock()
	defer l.load.mu.Unlock()
	l.defects[kind] += n
}

// wrong is the error of an answer that should be another.
type wrong string

func (w wrong) Error() string { return string(w) }

// load is what the clients have done.
type load struct {
	mu     sync.Mutex
	took   []time.Duration // by each operation
	others []time.Duration // by each operation beside what stalls
	late   time.Duration   // by which a timer was late beside what stalls, at most
	lost   int             // operations whose outcome is not known

	trips, heard int // of breakers at other replicas that may, or did, hear of a trip
}

// timed runs an operation, and notes how long it took. A client whose request is lost waits
// a moment.
func (l *storming) timed(operation func() error) error {
	began := time.Now()
	err := operation()
	took := time.Since(began)
	l.load.mu.Lock()
	if l.isLost(err) {
		l.load.lost++
		defer time.Sleep(20 * time.Millisecond)
	} else {
		l.load.took = append(l.load.took, took)
	}
	l.load.mu.Unlock()
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
