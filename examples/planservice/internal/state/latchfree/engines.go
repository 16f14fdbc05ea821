package latchfree

import (
	"context"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/oncecache"
)

// Engines opens each URL once, whoever asks. A file's engine is closed when nobody has
// used it for a while; to close an engine in memory would drop its data, so that is held
// by a lease of its own until Close.
type Engines struct {
	cache     *oncecache.Cache[string, *engine.Engine]
	held      oncecache.Cache[string, oncecache.Lease[string, *engine.Engine]]
	open      state.Opener
	creations latchprom.Creations
}

// NewEngines returns engines that are closed when nobody has used them for so long.
func NewEngines(open state.Opener, idleTimeout time.Duration) (*Engines, error) {
	creations := latchprom.NewCreations("engines")
	cache, err := oncecache.New(oncecache.Config[string, *engine.Engine]{
		Close:       func(_ string, e *engine.Engine) error { return e.Close() },
		IdleTimeout: idleTimeout,
		// A file's next engine waits until the one before it is closed.
		CloseBeforeCreate: true,
		// To count look-ups is a write to shared memory, which a transaction hides.
		RecordStats: true,
		OnCreate:    latchprom.OnCreate[string](creations),
	})
	return &Engines{cache: cache, open: open, creations: creations}, err
}

func (s *Engines) Acquire(ctx context.Context, url string) (*engine.Engine, func(), error) {
	lease, err := s.cache.Acquire(ctx, url, s.open)
	if err != nil {
		return nil, nil, err
	}
	if lease.Value().InMemory() {
		_, err := s.held.GetOrCreate(url, func() (oncecache.Lease[string, *engine.Engine], error) {
			return s.cache.Acquire(ctx, url, s.open)
		})
		if err != nil {
			lease.Release()
			return nil, nil, err
		}
	}
	return lease.Value(), lease.Release, nil
}

func (s *Engines) All() iter.Seq[*engine.Engine] {
	return func(yield func(*engine.Engine) bool) {
		for _, e := range s.cache.All() {
			if !yield(e) {
				return
			}
		}
	}
}

// Counts returns what the cache has counted.
func (s *Engines) Counts() api.EngineCache {
	c := s.cache.Stats()
	return api.EngineCache{Hits: c.Hits, Created: c.Created, Closed: c.Closed}
}

// Collectors returns what Prometheus may ask of the engines.
func (s *Engines) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		latchprom.Cache("engines", s.cache, latchprom.CacheOptions{Flights: true}),
		s.creations,
	}
}

// Close waits until no engine is in use. Acquire must not be called any more.
func (s *Engines) Close(ctx context.Context) error {
	for _, lease := range s.held.All() {
		lease.Release()
	}
	s.held.Clear()
	return s.cache.Close(ctx)
}
