package latchfree

import (
	"context"
	"iter"

	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/oncecache"
)

// engines opens each URL once, whoever asks. A file's engine is closed when nobody has
// used it for a while; to close an engine in memory would drop its data, so that is held
// by a lease of its own until Close.
type engines struct {
	cache *oncecache.Cache[string, *engine.Engine]
	held  oncecache.Cache[string, oncecache.Lease[string, *engine.Engine]]
	open  func(context.Context, string) (*engine.Engine, error)
}

func newEngines(c Config) (*engines, error) {
	cache, err := oncecache.New(oncecache.Config[string, *engine.Engine]{
		Close:       func(_ string, e *engine.Engine) error { return e.Close() },
		IdleTimeout: c.IdleTimeout,
		// A file's next engine waits until the one before it is closed.
		CloseBeforeCreate: true,
	})
	return &engines{cache: cache, open: c.Open}, err
}

func (s *engines) Acquire(ctx context.Context, url string) (*engine.Engine, func(), error) {
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

func (s *engines) All() iter.Seq[*engine.Engine] {
	return func(yield func(*engine.Engine) bool) {
		for _, e := range s.cache.All() {
			if !yield(e) {
				return
			}
		}
	}
}

// Close waits until no engine is in use. Acquire must not be called any more.
func (s *engines) Close(ctx context.Context) error {
	for _, lease := range s.held.All() {
		lease.Release()
	}
	s.held.Clear()
	return s.cache.Close(ctx)
}
