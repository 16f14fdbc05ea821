package locked

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
)

// engines opens each URL once. While one is being opened, callers of all URLs wait, and
// their contexts do not help. Nobody closes an engine before Close.
type engines struct {
	mu   sync.Mutex
	dict map[string]*engine.Engine
	open func(context.Context, string) (*engine.Engine, error)
}

func (s *engines) Acquire(ctx context.Context, url string) (*engine.Engine, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.dict[url]
	if e == nil {
		var err error
		if e, err = s.open(ctx, url); err != nil {
			return nil, nil, err
		}
		s.dict[url] = e
	}
	return e, func() {}, nil
}

func (s *engines) All() iter.Seq[*engine.Engine] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Values(slices.Collect(maps.Values(s.dict)))
}

func (s *engines) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, e := range s.dict {
		errs = append(errs, e.Close())
	}
	clear(s.dict)
	return errors.Join(errs...)
}
