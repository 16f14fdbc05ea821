package peers

import (
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/latchfree/latchfree/shardedregistry"
)

// pointers is what an engineer writes who knows both packages: a map of
// github.com/puzpuzpuz/xsync/v4 v4.5.0 that finds an atomic pointer for each
// key, through which its value is read and changed. The map itself changes only
// when keys come and go.
type pointers[V any] struct {
	m *xsync.Map[string, *atomic.Pointer[V]]
}

func newPointers[V any]() pointers[V] {
	return pointers[V]{xsync.NewMap[string, *atomic.Pointer[V]]()}
}

// add puts v where nothing is, and returns the pointer of key.
func (p pointers[V]) add(key string, v *V) (held *atomic.Pointer[V], loaded bool) {
	cell := new(atomic.Pointer[V])
	cell.Store(v)
	return p.m.LoadOrStore(key, cell)
}

// pointersRegistry is a registry on pointers. A deletion, which it does not
// have, would lose the updates that have found the pointer before.
type pointersRegistry[V any] struct{ pointers[versioned[V]] }

func newPointersRegistry[V any]() pointersRegistry[V] {
	return pointersRegistry[V]{newPointers[versioned[V]]()}
}

// Create stores value for key if key is absent.
func (r pointersRegistry[V]) Create(key string, value V) (version, error) {
	held, loaded := r.add(key, &versioned[V]{1, value})
	if loaded {
		return 0, &shardedregistry.ExistsError{Given: key, Stored: key, Version: held.Load().version}
	}
	return 1, nil
}

// Get returns the value of key.
func (r pointersRegistry[V]) Get(key string) (v V, ok bool) {
	cell, ok := r.m.Load(key)
	if !ok {
		return v, false
	}
	return cell.Load().value, true
}

// Update replaces the value of key by fn of it.
func (r pointersRegistry[V]) Update(key string, fn func(V) (V, error)) (entry[V], error) {
	cell, ok := r.m.Load(key)
	if !ok {
		return entry[V]{}, shardedregistry.ErrNotFound
	}
	for {
		old := cell.Load()
		next, err := old.next(fn)
		if err != nil {
			return entry[V]{}, err
		}
		if cell.CompareAndSwap(old, &next) {
			return entry[V]{Key: key, Value: next.value, Version: next.version}, nil
		}
	}
}

// pointersCache keeps values behind pointers, so that replacing one leaves the
// map alone. Two creations of one key may both happen.
type pointersCache[V any] struct {
	pointers[V]
	create func(string) (*V, error)
}

func newPointersCache[V any](create func(string) (*V, error)) pointersCache[V] {
	return pointersCache[V]{newPointers[V](), create}
}

func (c pointersCache[V]) get(key string) (*V, error) {
	if cell, ok := c.m.Load(key); ok {
		return cell.Load(), nil
	}
	v, err := c.create(key)
	if err != nil {
		return nil, err
	}
	held, _ := c.add(key, v)
	return held.Load(), nil
}

func (c pointersCache[V]) set(key string, v *V) {
	if cell, ok := c.m.Load(key); ok {
		cell.Store(v)
	} else if cell, loaded := c.add(key, v); loaded {
		cell.Store(v)
	}
}

func (c pointersCache[V]) delete(key string) { c.m.Delete(key) }
