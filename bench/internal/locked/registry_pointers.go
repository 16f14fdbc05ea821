package locked

import (
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/latchfree/latchfree/shardedregistry"
)

// PointersRegistry is the least that a registry without locks can be: a map of
// xsync that finds an atomic pointer for each key. A deletion, which it does not
// have, would lose the updates that have found the pointer before.
type PointersRegistry[V any] struct {
	m *xsync.MapOf[string, *atomic.Pointer[slot[V]]]
}

// NewPointersRegistry returns an empty registry.
func NewPointersRegistry[V any]() PointersRegistry[V] {
	return PointersRegistry[V]{xsync.NewMapOf[string, *atomic.Pointer[slot[V]]]()}
}

// Create stores value for key if key is absent.
func (r PointersRegistry[V]) Create(key string, value V) (version, error) {
	cell := new(atomic.Pointer[slot[V]])
	cell.Store(&slot[V]{version: 1, value: value})
	if held, loaded := r.m.LoadOrStore(key, cell); loaded {
		return 0, &shardedregistry.ExistsError{Given: key, Stored: key, Version: held.Load().version}
	}
	return 1, nil
}

// Get returns the value of key.
func (r PointersRegistry[V]) Get(key string) (v V, ok bool) {
	cell, ok := r.m.Load(key)
	if !ok {
		return v, false
	}
	return cell.Load().value, true
}

// Update replaces the value of key by fn of it. As with ours, fn may run again
// when others were faster.
func (r PointersRegistry[V]) Update(key string, fn func(V) (V, error)) (shardedregistry.Entry[string, V], error) {
	cell, ok := r.m.Load(key)
	if !ok {
		return shardedregistry.Entry[string, V]{}, shardedregistry.ErrNotFound
	}
	for {
		old := cell.Load()
		value, err := fn(old.value)
		if err != nil {
			return shardedregistry.Entry[string, V]{}, err
		}
		next := &slot[V]{version: old.version + 1, value: value}
		if cell.CompareAndSwap(old, next) {
			return shardedregistry.Entry[string, V]{Key: key, Value: value, Version: next.version}, nil
		}
	}
}
