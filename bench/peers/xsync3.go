package peers

import (
	"github.com/puzpuzpuz/xsync/v3"

	"github.com/latchfree/latchfree/shardedregistry"
)

// xsync3Registry is a registry on a bare map of github.com/puzpuzpuz/xsync/v3
// v3.5.1, which latchfree uses where look-ups are rare.
//
// The map allocates an entry for each change, so it holds values rather than
// pointers. Update runs its function inside Compute, once, while it holds the
// mutex of a bucket: a function that is slow there, or panics, stops every
// writer of the map at its next growth. A key that is deleted and created
// again would begin at version 1 again.
type xsync3Registry[V any] struct {
	m *xsync.MapOf[string, versioned[V]]
}

func newXsync3Registry[V any]() *xsync3Registry[V] {
	return &xsync3Registry[V]{xsync.NewMapOf[string, versioned[V]]()}
}

// Create stores value for key if key is absent.
func (r *xsync3Registry[V]) Create(key string, value V) (version, error) {
	held, loaded := r.m.LoadOrStore(key, versioned[V]{1, value})
	if loaded {
		return 0, &shardedregistry.ExistsError{Given: key, Stored: key, Version: held.version}
	}
	return held.version, nil
}

// Get returns the value of key.
func (r *xsync3Registry[V]) Get(key string) (V, bool) {
	held, ok := r.m.Load(key)
	return held.value, ok
}

// Update replaces the value of key by fn of it.
func (r *xsync3Registry[V]) Update(key string, fn func(V) (V, error)) (entry[V], error) {
	var err error
	held, ok := r.m.Compute(key, func(old versioned[V], loaded bool) (versioned[V], bool) {
		if !loaded {
			return old, true // delete it: Compute has no other way to leave a key absent
		}
		next, fnErr := old.next(fn)
		if fnErr != nil {
			err = fnErr
			return old, false
		}
		return next, false
	})
	switch {
	case err != nil:
		return entry[V]{}, err
	case !ok:
		return entry[V]{}, shardedregistry.ErrNotFound
	}
	return entry[V]{Key: key, Value: held.value, Version: held.version}, nil
}

// xsync3Queue is the bounded queue of the same version as a sink of records.
//
// It is a ring for many producers and consumers. A record gets no receipt
// that says which changeset it is in, cannot be read without being taken out,
// and a ring that is full or whose consumer sleeps holds its producers up. So
// it is a floor for what a shared sink costs rather than a substitute.
//
// Enqueue is deprecated in favour of TryEnqueue in a loop, but is one
// fetch-and-add, where the loop is a compare-and-swap that fails under
// contention: see xsync4Queue.
type xsync3Queue[E any] struct{ ring *xsync.MPMCQueueOf[E] }

func newXsync3Queue[E any](size int) xsync3Queue[E] {
	return xsync3Queue[E]{xsync.NewMPMCQueueOf[E](size)}
}

func (q xsync3Queue[E]) record(e E) {
	//lint:ignore SA1019 deprecated, and quicker
	q.ring.Enqueue(e)
}

func (q xsync3Queue[E]) take() (E, bool) { return q.ring.TryDequeue() }
