package peers

import (
	"runtime"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/latchfree/latchfree/shardedregistry"
)

// xsync4Registry is a registry on a bare map of github.com/puzpuzpuz/xsync/v4
// v4.5.0. All that xsync3Registry says holds here too.
type xsync4Registry[V any] struct {
	m *xsync.Map[string, versioned[V]]
}

func newXsync4Registry[V any]() *xsync4Registry[V] {
	return &xsync4Registry[V]{xsync.NewMap[string, versioned[V]]()}
}

// Create stores value for key if key is absent.
func (r *xsync4Registry[V]) Create(key string, value V) (version, error) {
	held, loaded := r.m.LoadOrStore(key, versioned[V]{1, value})
	if loaded {
		return 0, &shardedregistry.ExistsError{Given: key, Stored: key, Version: held.version}
	}
	return held.version, nil
}

// Get returns the value of key.
func (r *xsync4Registry[V]) Get(key string) (V, bool) {
	held, ok := r.m.Load(key)
	return held.value, ok
}

// Update replaces the value of key by fn of it.
func (r *xsync4Registry[V]) Update(key string, fn func(V) (V, error)) (entry[V], error) {
	var err error
	held, ok := r.m.Compute(key, func(old versioned[V], loaded bool) (versioned[V], xsync.ComputeOp) {
		if !loaded {
			return old, xsync.CancelOp
		}
		next, fnErr := old.next(fn)
		if fnErr != nil {
			err = fnErr
			return old, xsync.CancelOp
		}
		return next, xsync.UpdateOp
	})
	switch {
	case err != nil:
		return entry[V]{}, err
	case !ok:
		return entry[V]{}, shardedregistry.ErrNotFound
	}
	return entry[V]{Key: key, Value: held.value, Version: held.version}, nil
}

// xsync4Queue is the bounded queue of the same version, otherwise as
// xsync3Queue: record is the loop that its documentation asks for.
type xsync4Queue[E any] struct{ ring *xsync.MPMCQueue[E] }

func newXsync4Queue[E any](size int) xsync4Queue[E] {
	return xsync4Queue[E]{xsync.NewMPMCQueue[E](size)}
}

func (q xsync4Queue[E]) record(e E) {
	for !q.ring.TryEnqueue(e) {
		runtime.Gosched() // another producer won, or the ring is full
	}
}

func (q xsync4Queue[E]) take() (E, bool) { return q.ring.TryDequeue() }
