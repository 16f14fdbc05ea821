package clustered

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/latchfree/latchfree/cluster/registry"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// mirrored is a registry whose versions are revisions of a bucket.
type mirrored[V any] struct {
	r       *registry.Registry[string, V]
	bucket  string
	timeout time.Duration
}

func openRegistry[V any](ctx context.Context, c Config, bucket string, closing *closers) (mirrored[V], error) {
	r, err := registry.Open(ctx, c.JetStream, bucket, registry.Config[string, V]{
		MaxLag:    c.MaxLag,
		OnForeign: func(f registry.Foreign) { c.Log.Warn("foreign value", "bucket", bucket, "key", f.Key, "error", f.Err) },
	})
	if err != nil {
		return mirrored[V]{}, err
	}
	closing.add(r.Close)
	return mirrored[V]{r, bucket, c.Timeout}, nil
}

func (m mirrored[V]) mirror() api.Mirror {
	lag := m.r.Lag()
	a := api.Mirror{Bucket: m.bucket, Entries: m.r.Len(), Revision: uint64(lag.Revision), Lag: lag.Proven.Milliseconds(),
		Stale: m.r.Fresh() != nil, Attached: lag.Attached}
	if lag.Err != nil {
		a.Error = lag.Err.Error()
	}
	return a
}

// write calls f with a normalised name and a deadline. It succeeds when the bucket has the
// value, also if the mirror does not have it in time.
func (m mirrored[V]) write(ctx context.Context, name string, v V, f func(ctx context.Context, name string) (registry.Version, error)) (state.Entry[V], error) {
	name, err := state.Normalize(name)
	if err != nil {
		return state.Entry[V]{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	version, err := f(ctx, name)
	if err != nil && !errors.Is(err, registry.ErrBehind) {
		return state.Entry[V]{}, translate(err)
	}
	return state.Entry[V]{Name: name, Version: uint64(version), Value: v}, nil
}

func (m mirrored[V]) Create(ctx context.Context, name string, v V) (state.Entry[V], error) {
	return m.write(ctx, name, v, func(ctx context.Context, name string) (registry.Version, error) {
		return m.r.Create(ctx, name, v)
	})
}

func (m mirrored[V]) Update(ctx context.Context, name string, version uint64, v V) (state.Entry[V], error) {
	return m.write(ctx, name, v, func(ctx context.Context, name string) (registry.Version, error) {
		return m.r.UpdateIf(ctx, name, registry.Version(version), v)
	})
}

// Get reads the mirror.
func (m mirrored[V]) Get(name string) (state.Entry[V], error) {
	name, err := state.Normalize(name)
	if err != nil {
		return state.Entry[V]{}, state.ErrNotFound
	}
	e, ok := m.r.Lookup(name)
	if !ok {
		return state.Entry[V]{}, state.ErrNotFound
	}
	return state.Entry[V]{Name: e.Key, Version: uint64(e.Version), Value: e.Value}, nil
}

// All reads the mirror.
func (m mirrored[V]) All() iter.Seq[state.Entry[V]] {
	return func(yield func(state.Entry[V]) bool) {
		for e := range m.r.Entries() {
			if !yield(state.Entry[V]{Name: e.Key, Version: uint64(e.Version), Value: e.Value}) {
				return
			}
		}
	}
}
