package latchfree

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Registry keeps values in this process.
type Registry[V any] struct {
	r    *shardedregistry.Registry[string, V]
	name string
}

// NewRegistry returns a registry that has what was saved, and gives versions above last. Its
// configuration normalises names: no method can forget.
func NewRegistry[V any](name string, last uint64, saved []state.Entry[V]) (Registry[V], error) {
	config := shardedregistry.Config[string, V]{Normalize: state.Normalize}
	entries := make([]shardedregistry.Entry[string, V], len(saved))
	for i, e := range saved {
		entries[i] = shardedregistry.Entry[string, V]{Key: e.Name, Value: e.Value, Version: shardedregistry.Version(e.Version)}
	}
	r, err := shardedregistry.Restore(config, shardedregistry.Version(last), slices.Values(entries))
	return Registry[V]{r, name}, err
}

func (r Registry[V]) Create(_ context.Context, name string, v V) (state.Entry[V], error) {
	version, err := r.r.Create(name, v)
	return r.entry(name, v, version, err)
}

func (r Registry[V]) Update(_ context.Context, name string, version uint64, v V) (state.Entry[V], error) {
	next, err := r.r.UpdateIf(name, shardedregistry.Version(version), v)
	return r.entry(name, v, next, err)
}

func (r Registry[V]) Get(name string) (state.Entry[V], error) {
	e, ok := r.r.Lookup(name)
	if !ok {
		return state.Entry[V]{}, state.ErrNotFound
	}
	return state.Entry[V]{Name: e.Key, Version: uint64(e.Version), Value: e.Value}, nil
}

func (r Registry[V]) All() iter.Seq[state.Entry[V]] {
	return func(yield func(state.Entry[V]) bool) {
		for e := range r.r.Entries() {
			if !yield(state.Entry[V]{Name: e.Key, Version: uint64(e.Version), Value: e.Value}) {
				return
			}
		}
	}
}

// Collectors returns what Prometheus may ask of the registry.
func (r Registry[V]) Collectors() []prometheus.Collector {
	return []prometheus.Collector{latchprom.Registry(r.name, r.r)}
}

func (r Registry[V]) entry(name string, v V, version shardedregistry.Version, err error) (state.Entry[V], error) {
	if err != nil {
		return state.Entry[V]{}, Translate(err)
	}
	name, _ = state.Normalize(name) // which is Config.Normalize: as the registry has it
	return state.Entry[V]{Name: name, Version: uint64(version), Value: v}, nil
}

// Translate returns the error of package state for one of the library, which has the
// versions, and stays as detail.
func Translate(err error) error {
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
