package breaker

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// suspects are the keys that other replicas report open, until the reports end.
type suspects[K ~string] struct {
	until   *shardedregistry.Registry[K, time.Time]
	changed chan struct{} // has room for one: there is something to settle
}

func newSuspects[K ~string]() *suspects[K] {
	return &suspects[K]{
		until: shardedregistry.MustNew(shardedregistry.Config[K, time.Time]{
			TTL: func(_ K, until time.Time) time.Duration { return time.Until(until) },
		}),
		changed: make(chan struct{}, 1),
	}
}

func (s *suspects[K]) has(k K) bool {
	_, ok := s.until.Get(k)
	return ok
}

// add suspects k for d at least.
func (s *suspects[K]) add(k K, d time.Duration) {
	until := time.Now().Add(d)
	s.until.Compute(k, func(old time.Time, exists bool) (time.Time, shardedregistry.ComputeOp, error) {
		if exists && old.After(until) {
			return old, shardedregistry.CancelOp, nil
		}
		return until, shardedregistry.UpdateOp, nil
	})
}

func (s *suspects[K]) remove(k K) { s.until.Delete(k) }

func (s *suspects[K]) removeAll() { s.until.Clear() }

// follow notes that suspicions begin and end. It does not wait for what that leads to.
func (s *suspects[K]) follow(ctx context.Context) {
	for range s.until.WatchSnapshot(ctx) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// settleSuspects makes the local group ask for the settings of its stored keys again when
// suspicions have begun or ended. Those that do while it asks make it ask once more, so
// many together do not cost the product of their number and that of the keys. If Suspect
// does not return, the other keys have their settings.
func (g *Group[K]) settleSuspects(ctx context.Context) {
	for {
		select {
		case <-g.suspects.changed:
			g.settle()
		case <-ctx.Done():
			return
		}
	}
}
