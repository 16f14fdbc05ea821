package naive

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// registry is the dictionary of actions or plans.
type registry[V any] struct {
	gil
	dict map[string]state.Entry[V]
	step func(string)
}

// Create looks, and then stores: of two that look together the first is overwritten. It
// stores the name as it is given.
func (r *registry[V]) Create(_ context.Context, name string, v V) (state.Entry[V], error) {
	if _, err := state.Normalize(name); err != nil {
		return state.Entry[V]{}, err
	}
	if _, ok := r.load(name); ok {
		return state.Entry[V]{}, state.ErrExists
	}
	r.step("registry: looked for the name")
	e := state.Entry[V]{Name: name, Version: 1, Value: v}
	r.do(func() { r.dict[name] = e })
	return e, nil
}

// Get normalises the name, so that it does not find what was created under another
// spelling.
func (r *registry[V]) Get(name string) (state.Entry[V], error) {
	name, err := state.Normalize(name)
	if err != nil {
		return state.Entry[V]{}, state.ErrNotFound
	}
	e, ok := r.load(name)
	if !ok {
		return state.Entry[V]{}, state.ErrNotFound
	}
	return e, nil
}

// Update reads, and then stores: of two that read together the first is lost.
func (r *registry[V]) Update(_ context.Context, name string, version uint64, v V) (state.Entry[V], error) {
	e, err := r.Get(name)
	if err != nil {
		return e, err
	}
	if e.Version != version {
		return e, state.ErrConflict
	}
	r.step("registry: read the version")
	e.Version, e.Value = version+1, v
	r.do(func() { r.dict[e.Name] = e })
	return e, nil
}

func (r *registry[V]) All() iter.Seq[state.Entry[V]] {
	var all []state.Entry[V]
	r.do(func() { all = slices.Collect(maps.Values(r.dict)) })
	return slices.Values(all)
}

func (r *registry[V]) load(name string) (e state.Entry[V], ok bool) {
	r.do(func() { e, ok = r.dict[name] })
	return e, ok
}
