package registry

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Lag says how far the mirror may be behind the bucket.
type Lag struct {
	// Attached reports whether the mirror follows the bucket. While it does not, it
	// stays as it is.
	Attached bool
	// Proven is for how long the mirror may have missed writes: it has all that were
	// acknowledged longer ago. Sync proves it, and Config.MaxLag does so regularly.
	Proven time.Duration
	// Revision is one that the mirror has come to.
	Revision Version
	// Err is why the mirror is not attached, or could not prove anything; nil if all
	// is well.
	Err error
}

// Lag returns how far the mirror may be behind. It is local, and reads the monotonic clock.
func (r *Registry[K, V]) Lag() Lag {
	proven := r.beater.proven.Load() // before the clock
	l := Lag{
		Attached: r.mirror.settled.Load() && r.life.Err() == nil,
		Proven:   time.Since(r.begun) - time.Duration(proven),
		Revision: r.Revision(),
		Err:      r.status.failure(),
	}
	if r.life.Err() != nil {
		l.Err = context.Cause(r.life)
	}
	return l
}

// Fresh returns nil if the mirror has all writes that were acknowledged more than
// Config.MaxLag ago, and otherwise an error that matches [ErrStale]. A caller that must not read older values calls
// it before it reads:
//
//	if err := r.Fresh(); err != nil {
//		return err
//	}
//	plan, ok := r.Get("plan")
//
// Fresh panics if Config.MaxLag is not set. It is local and wait-free, and reads the
// monotonic clock.
func (r *Registry[K, V]) Fresh() error {
	if r.config.MaxLag == 0 {
		panic("registry: Fresh called without Config.MaxLag")
	}
	proven := r.beater.proven.Load()
	if lag := time.Since(r.begun) - time.Duration(proven); lag > r.config.MaxLag {
		return fmt.Errorf("%w: by up to %v, and MaxLag is %v", ErrStale, lag, r.config.MaxLag)
	}
	return nil
}

// Revision returns a revision of the bucket that the mirror has come to. It increases,
// unless the bucket is restored from a backup or made anew.
func (r *Registry[K, V]) Revision() Version { return Version(r.mirror.shown.Load()) }

// Stats are counters of a registry.
type Stats struct {
	Attachments   uint64 // how often the mirror was attached to the bucket and has listed it
	Resets        uint64 // how often the bucket was found restored or made anew
	Deliveries    uint64 // messages that have come for the mirror
	ForeignKeys   int    // keys of the bucket that are none of the registry's
	ForeignValues int    // keys whose values cannot be decoded or indexed
}

// Stats returns the counters. It takes a mutex.
func (r *Registry[K, V]) Stats() Stats {
	_, foreign := r.tombs.len()
	return Stats{
		Attachments: r.mirror.attached.Load(), Resets: r.mirror.resets.Load(),
		Deliveries:  r.mirror.deliveries.Load(),
		ForeignKeys: int(r.mirror.foreignKeys.Load()), ForeignValues: foreign,
	}
}

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
