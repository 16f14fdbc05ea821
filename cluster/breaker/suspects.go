package breaker

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// suspects are the keys that other replicas report open, until the reports end.
type suspects[K ~string] struct {
	until *shardedregistry.Registry[K, time.Time]
}

func newSuspects[K ~string]() *suspects[K] {
	return &suspects[K]{shardedregistry.MustNew(shardedregistry.Config[K, time.Time]{
		TTL: func(_ K, until time.Time) time.Duration { return time.Until(until) },
	})}
}

func (s *suspects[K]) has(k K) bool {
	_, ok := s.until.Get(k)
	return ok
}

// add suspects k for d at least.
func (s *suspects[K]) add(k K, d time.Duration) {
	until := time.Now().Add(d)
	s.until.Upsert(k, func(old time.Time, exists bool) (time.Time, error) {
		if exists && old.After(until) {
			return old, nil
		}
		return until, nil
	})
}

func (s *suspects[K]) remove(k K) { s.until.Delete(k) }

func (s *suspects[K]) removeAll() { s.until.Clear() }

// followSuspects makes the local group look at the settings of its keys again when a
// suspicion begins or ends.
func (g *Group[K]) followSuspects(ctx context.Context) {
	for range g.suspects.until.WatchSnapshot(ctx) {
		g.settle()
	}
}
