package registry

import "sync/atomic"

// status is what a registry knows of its bucket, and of the reason why the mirror is behind.
type status struct {
	ttl   atomic.Bool           // the bucket lets keys expire with a marker
	known atomic.Int64          // for how long the bucket knows message ids, in ns
	clock atomic.Int64          // the bucket's time at Open, in ns
	err   atomic.Pointer[error] // why the mirror is not attached, or a beat has failed
}

func (s *status) fail(err error) { s.err.Store(&err) }

func (s *status) failure() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}
