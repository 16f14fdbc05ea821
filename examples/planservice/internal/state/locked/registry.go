package locked

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

type registry[V any] struct {
	mu   sync.Mutex
	dict map[string]state.Entry[V]
}

func (r *registry[V]) Create(_ context.Context, name string, v V) (state.Entry[V], error) {
	name, err := state.Normalize(name)
	if err != nil {
		return state.Entry[V]{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.dict[name]; ok {
		return state.Entry[V]{}, state.ErrExists
	}
	e := state.Entry[V]{Name: name, Version: 1, Value: v}
	r.dict[name] = e
	return e, nil
}

func (r *registry[V]) Get(name string) (state.Entry[V], error) {
	name, err := state.Normalize(name)
	if err != nil {
		return state.Entry[V]{}, state.ErrNotFound
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.dict[name]
	if !ok {
		return state.Entry[V]{}, state.ErrNotFound
	}
	return e, nil
}

func (r *registry[V]) Update(_ context.Context, name string, version uint64, v V) (state.Entry[V], error) {
	name, err := state.Normalize(name)
	if err != nil {
		return state.Entry[V]{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.dict[name]
	switch {
	case !ok:
		return e, state.ErrNotFound
	case e.Version != version:
		return e, state.ErrConflict
	}
	e.Version, e.Value = version+1, v
	r.dict[name] = e
	return e, nil
}

func (r *registry[V]) All() iter.Seq[state.Entry[V]] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Values(slices.Collect(maps.Values(r.dict)))
}
