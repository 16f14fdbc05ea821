package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// openEngine gives the engine a number and writes it to the trail. An engine in memory is
// never closed, as its data would be lost, so their number is bounded.
func (s *Service) openEngine(ctx context.Context, url string) (*engine.Engine, error) {
	leave, err := s.admit(url)
	if err != nil {
		return nil, err
	}
	s.slow(url, s.config.SlowOpen)
	e, err := engine.Open(ctx, url, s.engines.Add(1), func(e *engine.Engine) {
		leave()
		s.note(api.AuditLine{Kind: api.KindEngineClosed, Database: e.URL, Engine: e.Number})
	})
	if err != nil {
		leave()
		return nil, err
	}
	s.note(api.AuditLine{Kind: api.KindEngine, Database: url, Engine: e.Number})
	return e, nil
}

// slow takes its time with a database that is slow.
func (s *Service) slow(url string, d time.Duration) {
	if d > 0 && strings.HasPrefix(url, engine.Memory+"slow-") {
		time.Sleep(d)
	}
}

// admit reserves a place for an engine that a client has named. The caller gives it back by
// leave.
func (s *Service) admit(url string) (leave func(), err error) {
	if url == s.config.Database || !strings.HasPrefix(url, engine.Memory) {
		return func() {}, nil
	}
	limit := int64(s.config.MemoryDatabases)
	for {
		n := s.inMemory.Load()
		if n >= limit {
			return nil, fmt.Errorf("%w: %d are open", ErrTooManyDatabases, n)
		}
		if s.inMemory.CompareAndSwap(n, n+1) {
			return func() { s.inMemory.Add(-1) }, nil
		}
	}
}

// database returns the URL that a caller may use: the service's own, which an empty one
// means, or one in memory. Callers do not name files.
func (s *Service) database(url string) (string, error) {
	if url == "" || url == s.config.Database {
		return s.config.Database, nil
	}
	name, ok := strings.CutPrefix(url, engine.Memory)
	if !ok {
		return "", invalid("the database is %sNAME or empty", engine.Memory)
	}
	name, err := state.Normalize(name)
	return engine.Memory + name, err
}

// Migrate is the migration runner. It asks for the engine by URL, as the unit of work
// does, and knows nothing of it.
func (s *Service) migrate(ctx context.Context, url string) error {
	return s.withEngine(ctx, url, func(e *engine.Engine) error { return e.Migrate(ctx) })
}

// withEngine is the unit of work: fn uses the engine, which is not closed meanwhile.
func (s *Service) withEngine(ctx context.Context, url string, fn func(*engine.Engine) error) error {
	e, release, err := s.set.Engines.Acquire(ctx, url)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEngine, err)
	}
	defer release()
	if err := fn(e); err != nil {
		return fmt.Errorf("%w: %w", ErrEngine, err)
	}
	return nil
}

// Engines returns the engines that the service would use, by URL.
func (s *Service) Engines() []api.Engine {
	all := []api.Engine{}
	for e := range s.set.Engines.All() {
		all = append(all, api.Engine{URL: e.URL, Number: e.Number})
	}
	slices.SortFunc(all, func(a, b api.Engine) int { return cmp.Compare(a.URL, b.URL) })
	return all
}
