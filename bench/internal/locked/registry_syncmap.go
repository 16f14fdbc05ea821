package locked

import (
	"sync"
	"sync/atomic"

	"github.com/latchfree/latchfree/shardedregistry"
)

// tomb is what a SyncMapRegistry keeps for a key: a slot, or the last version
// of a deleted key. Tombs are immutable and replaced whole.
type tomb[V any] struct {
	slot[V]
	dead bool
}

// SyncMapRegistry is a sync.Map whose values are replaced by its
// CompareAndSwap. A deleted key leaves a tomb for ever: nothing else in
// sync.Map can keep the versions of a key from repeating.
type SyncMapRegistry[K comparable, V any] struct {
	m    sync.Map // K to *tomb[V]
	live atomic.Int64
}

// load returns what is kept for key, dead or alive, or nil.
func (r *SyncMapRegistry[K, V]) load(key K) *tomb[V] {
	if now, ok := r.m.Load(key); ok {
		return now.(*tomb[V])
	}
	return nil
}

// swap replaces old, which may be nil, and reports whether it did.
func (r *SyncMapRegistry[K, V]) swap(key K, old, next *tomb[V]) bool {
	if old == nil {
		_, loaded := r.m.LoadOrStore(key, next)
		return !loaded
	}
	return r.m.CompareAndSwap(key, old, next)
}

// Create stores value for key if key is absent.
func (r *SyncMapRegistry[K, V]) Create(key K, value V) (version, error) {
	for {
		old := r.load(key)
		next := &tomb[V]{slot: slot[V]{1, value}}
		if old != nil {
			if !old.dead {
				return 0, &shardedregistry.ExistsError{Given: key, Stored: key, Version: old.version}
			}
			next.version = old.version + 1
		}
		if r.swap(key, old, next) {
			r.live.Add(1)
			return next.version, nil
		}
	}
}

// Get returns the value of key.
func (r *SyncMapRegistry[K, V]) Get(key K) (value V, ok bool) {
	if now := r.load(key); now != nil && !now.dead {
		return now.value, true
	}
	return value, false
}

// Lookup returns what key holds.
func (r *SyncMapRegistry[K, V]) Lookup(key K) (entry shardedregistry.Entry[K, V], ok bool) {
	if now := r.load(key); now != nil && !now.dead {
		return shardedregistry.Entry[K, V]{Key: key, Value: now.value, Version: now.version}, true
	}
	return entry, false
}

// Update replaces the value of key by fn of it; fn may run again.
func (r *SyncMapRegistry[K, V]) Update(key K, fn func(V) (V, error)) (entry shardedregistry.Entry[K, V], err error) {
	for {
		old := r.load(key)
		if old == nil || old.dead {
			return entry, shardedregistry.ErrNotFound
		}
		value, err := fn(old.value)
		if err != nil {
			return entry, err
		}
		next := &tomb[V]{slot: slot[V]{old.version + 1, value}}
		if r.swap(key, old, next) {
			return shardedregistry.Entry[K, V]{Key: key, Value: value, Version: next.version}, nil
		}
	}
}

// UpdateIf stores value for key if its version is want.
func (r *SyncMapRegistry[K, V]) UpdateIf(key K, want version, value V) (version, error) {
	for {
		old := r.load(key)
		if old == nil || old.dead {
			return 0, shardedregistry.ErrNotFound
		}
		if old.version != want {
			return 0, &shardedregistry.ConflictError{Have: old.version, Want: want}
		}
		if r.swap(key, old, &tomb[V]{slot: slot[V]{want + 1, value}}) {
			return want + 1, nil
		}
	}
}

// Put stores value for key.
func (r *SyncMapRegistry[K, V]) Put(key K, value V) (version, error) {
	for {
		old := r.load(key)
		next := &tomb[V]{slot: slot[V]{1, value}}
		if old != nil {
			next.version = old.version + 1
		}
		if !r.swap(key, old, next) {
			continue
		}
		if old == nil || old.dead {
			r.live.Add(1)
		}
		return next.version, nil
	}
}

// Delete removes key.
func (r *SyncMapRegistry[K, V]) Delete(key K) (entry shardedregistry.Entry[K, V], ok bool) {
	for {
		old := r.load(key)
		if old == nil || old.dead {
			return entry, false
		}
		if r.swap(key, old, &tomb[V]{slot: slot[V]{version: old.version + 1}, dead: true}) {
			r.live.Add(-1)
			return shardedregistry.Entry[K, V]{Key: key, Value: old.value, Version: old.version}, true
		}
	}
}

// Len returns the number of keys.
func (r *SyncMapRegistry[K, V]) Len() int { return max(0, int(r.live.Load())) }
