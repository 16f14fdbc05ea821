package latchfree

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/shardedregistry"
)

type registry[V any] struct {
	r *shardedregistry.Registry[string, V]
}

// newRegistry normalises names in one place: in the configuration. No method can forget.
func newRegistry[V any](last uint64, saved []state.Entry[V]) (registry[V], error) {
	config := shardedregistry.Config[string, V]{Normalize: state.Normalize}
	entries := make([]shardedregistry.Entry[string, V], len(saved))
	for i, e := range saved {
		entries[i] = shardedregistry.Entry[string, V]{Key: e.Name, Value: e.Value, Version: shardedregistry.Version(e.Version)}
	}
	r, err := shardedregistry.Restore(config, shardedregistry.Version(last), slices.Values(entries))
	return registry[V]{r}, err
}

func (r registry[V]) Create(name string, v V) (state.Entry[V], error) {
	version, err := r.r.Create(name, v)
	return r.entry(name, v, version, err)
}

func (r registry[V]) Update(name string, version uint64, v V) (state.Entry[V], error) {
	next, err := r.r.UpdateIf(name, shardedregistry.Version(version), v)
	return r.entry(name, v, next, err)
}

func (r registry[V]) Get(name string) (state.Entry[V], error) {
	e, ok := r.r.Lookup(name)
	if !ok {
		return state.Entry[V]{}, state.ErrNotFound
	}
	return state.Entry[V]{Name: e.Key, Version: uint64(e.Version), Value: e.Value}, nil
}

func (r registry[V]) All() iter.Seq[state.Entry[V]] {
	return func(yield func(state.Entry[V]) bool) {
		for e := range r.r.Entries() {
			if !yield(state.Entry[V]{Name: e.Key, Version: uint64(e.Version), Value: e.Value}) {
				return
			}
		}
	}
}

func (r registry[V]) entry(name string, v V, version shardedregistry.Version, err error) (state.Entry[V], error) {
	if err != nil {
		return state.Entry[V]{}, translate(err)
	}
	name, _ = state.Normalize(name) // which is Config.Normalize: as the registry has it
	return state.Entry[V]{Name: name, Version: uint64(version), Value: v}, nil
}

// translate keeps the library's error, which has the versions, as detail.
func translate(err error) error {
	for from, to := range map[error]error{
		shardedregistry.ErrExists: state.ErrExists, shardedregistry.ErrNotFound: state.ErrNotFound,
		shardedregistry.ErrConflict: state.ErrConflict, shardedregistry.ErrInvalidKey: state.ErrInvalidName,
	} {
		if errors.Is(err, from) {
			return fmt.Errorf("%w (%w)", to, err)
		}
	}
	return err
}
