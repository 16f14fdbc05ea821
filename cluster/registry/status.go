package registry

import (
	"sync"
	"sync/atomic"
	"time"
)

// status is what a registry can say about its mirror.
type status struct {
	ttl   atomic.Bool  // the bucket lets keys expire with a marker
	known atomic.Int64 // for how long the bucket knows message ids, in ns
	clock atomic.Int64 // the bucket's time at Open, in ns
	heard atomic.Int64 // when the server that feeds the mirror was last heard of, in ns since Open

	mu      sync.Mutex
	err     error         // why the mirror is not attached, or a beat has failed
	changed chan struct{} // closed and replaced with each change of err
}

// hear notes that something has come from the server that feeds the mirror.
func (s *status) hear(since time.Duration) { s.heard.Store(int64(since)) }

func (s *status) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *status) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// changes returns a channel that is closed with the next change of failure.
func (s *status) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}
