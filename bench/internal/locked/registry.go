package locked

import (
	"maps"
	"sync"

	"github.com/latchfree/latchfree/shardedregistry"
)

// version is what all registries number the values of a key with.
type version = shardedregistry.Version

// slot is what a locked registry keeps for a key. A deleted key leaves no
// slot; its last version is covered by the registry's floor.
type slot[V any] struct {
	version version
	value   V
}

// slots is a map with versions, to be guarded by its owner's lock.
type slots[K comparable, V any] struct {
	m     map[K]slot[V]
	floor version // at least every version of every deleted key
}

func (s *slots[K, V]) create(key K, value V) (version, error) {
	if old, ok := s.m[key]; ok {
		return 0, &shardedregistry.ExistsError{Given: key, Stored: key, Version: old.version}
	}
	return s.put(key, value), nil
}

func (s *slots[K, V]) put(key K, value V) version {
	if s.m == nil {
		s.m = make(map[K]slot[V])
	}
	next := slot[V]{s.floor + 1, value}
	if old, ok := s.m[key]; ok {
		next.version = old.version + 1
	}
	s.m[key] = next
	return next.version
}

func (s *slots[K, V]) update(key K, fn func(V) (V, error)) (shardedregistry.Entry[K, V], error) {
	old, ok := s.m[key]
	if !ok {
		return shardedregistry.Entry[K, V]{}, shardedregistry.ErrNotFound
	}
	value, err := fn(old.value)
	if err != nil {
		return shardedregistry.Entry[K, V]{}, err
	}
	s.m[key] = slot[V]{old.version + 1, value}
	return shardedregistry.Entry[K, V]{Key: key, Value: value, Version: old.version + 1}, nil
}

func (s *slots[K, V]) updateIf(key K, want version, value V) (version, error) {
	old, ok := s.m[key]
	if !ok {
		return 0, shardedregistry.ErrNotFound
	}
	if old.version != want {
		return 0, &shardedregistry.ConflictError{Have: old.version, Want: want}
	}
	s.m[key] = slot[V]{want + 1, value}
	return want + 1, nil
}

func (s *slots[K, V]) lookup(key K) (shardedregistry.Entry[K, V], bool) {
	now, ok := s.m[key]
	if !ok {
		return shardedregistry.Entry[K, V]{}, false
	}
	return shardedregistry.Entry[K, V]{Key: key, Value: now.value, Version: now.version}, true
}

func (s *slots[K, V]) delete(key K) (shardedregistry.Entry[K, V], bool) {
	last, ok := s.lookup(key)
	if ok {
		s.floor = max(s.floor, last.Version+1)
		delete(s.m, key)
	}
	return last, ok
}

// Snapshot is a copy of what a locked registry held.
type Snapshot[K comparable, V any] struct{ m map[K]slot[V] }

// Get returns the value of key.
func (s Snapshot[K, V]) Get(key K) (V, bool) {
	now, ok := s.m[key]
	return now.value, ok
}

// Len returns the number of keys.
func (s Snapshot[K, V]) Len() int { return len(s.m) }

// MutexRegistry is a map with versions behind one mutex: the fix that the
// defect report suggests.
type MutexRegistry[K comparable, V any] struct {
	mu sync.Mutex
	slots[K, V]
}

// Create stores value for key if key is absent.
func (r *MutexRegistry[K, V]) Create(key K, value V) (version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.create(key, value)
}

// Get returns the value of key.
func (r *MutexRegistry[K, V]) Get(key K) (V, bool) {
	r.mu.Lock()
	now, ok := r.m[key]
	r.mu.Unlock()
	return now.value, ok
}

// Lookup returns what key holds.
func (r *MutexRegistry[K, V]) Lookup(key K) (shardedregistry.Entry[K, V], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lookup(key)
}

// Update replaces the value of key by fn of it; fn runs under the lock.
func (r *MutexRegistry[K, V]) Update(key K, fn func(V) (V, error)) (shardedregistry.Entry[K, V], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.update(key, fn)
}

// UpdateIf stores value for key if its version is want.
func (r *MutexRegistry[K, V]) UpdateIf(key K, want version, value V) (version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.updateIf(key, want, value)
}

// Put stores value for key.
func (r *MutexRegistry[K, V]) Put(key K, value V) (version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.put(key, value), nil
}

// Delete removes key.
func (r *MutexRegistry[K, V]) Delete(key K) (shardedregistry.Entry[K, V], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delete(key)
}

// Len returns the number of keys.
func (r *MutexRegistry[K, V]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.m)
}

// Snapshot copies the map under the lock.
func (r *MutexRegistry[K, V]) Snapshot() Snapshot[K, V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Snapshot[K, V]{maps.Clone(r.m)}
}

// RWMutexRegistry is MutexRegistry with readers that share the lock.
type RWMutexRegistry[K comparable, V any] struct {
	mu sync.RWMutex
	slots[K, V]
}

// Create stores value for key if key is absent.
func (r *RWMutexRegistry[K, V]) Create(key K, value V) (version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.create(key, value)
}

// Get returns the value of key.
func (r *RWMutexRegistry[K, V]) Get(key K) (V, bool) {
	r.mu.RLock()
	now, ok := r.m[key]
	r.mu.RUnlock()
	return now.value, ok
}

// Lookup returns what key holds.
func (r *RWMutexRegistry[K, V]) Lookup(key K) (shardedregistry.Entry[K, V], bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lookup(key)
}

// Update replaces the value of key by fn of it; fn runs under the lock.
func (r *RWMutexRegistry[K, V]) Update(key K, fn func(V) (V, error)) (shardedregistry.Entry[K, V], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.update(key, fn)
}

// UpdateIf stores value for key if its version is want.
func (r *RWMutexRegistry[K, V]) UpdateIf(key K, want version, value V) (version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.updateIf(key, want, value)
}

// Put stores value for key.
func (r *RWMutexRegistry[K, V]) Put(key K, value V) (version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.put(key, value), nil
}

// Delete removes key.
func (r *RWMutexRegistry[K, V]) Delete(key K) (shardedregistry.Entry[K, V], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delete(key)
}

// Len returns the number of keys.
func (r *RWMutexRegistry[K, V]) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.m)
}

// Snapshot copies the map under the lock, shared with readers.
func (r *RWMutexRegistry[K, V]) Snapshot() Snapshot[K, V] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Snapshot[K, V]{maps.Clone(r.m)}
}
