package naive

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/internal/engine"
)

// engines is a dictionary from URL to engine. Nobody closes an engine before Close, as
// nobody knows who uses it.
type engines struct {
	gil
	dict   map[string]*engine.Engine
	opened []*engine.Engine
	open   func(context.Context, string) (*engine.Engine, error)
	step   func(string)
}

// Acquire looks, and then opens and stores: of two that look together each has its own.
func (s *engines) Acquire(ctx context.Context, url string) (*engine.Engine, func(), error) {
	var e *engine.Engine
	s.do(func() { e = s.dict[url] })
	if e != nil {
		return e, func() {}, nil
	}
	s.step("engines: looked for the URL")
	e, err := s.open(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	s.do(func() { s.dict[url] = e; s.opened = append(s.opened, e) })
	return e, func() {}, nil
}

func (s *engines) All() iter.Seq[*engine.Engine] {
	var all []*engine.Engine
	s.do(func() {
		for _, e := range s.dict {
			all = append(all, e)
		}
	})
	return slices.Values(all)
}

func (s *engines) Close(context.Context) error {
	var all []*engine.Engine
	s.do(func() { all, s.opened = s.opened, nil })
	var errs []error
	for _, e := range all {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}
