package locked

import (
	"errors"
	"sync"
)

// MutexCache is the fix that the report of two engines for one URL suggests: a
// map and a mutex, held while a value is created.
type MutexCache[K comparable, V any] struct {
	mu       sync.Mutex
	m        map[K]V
	renewals map[K]*renewal[V]
}

// GetOrCreate returns the value of k and creates it if there is none.
func (c *MutexCache[K, V]) GetOrCreate(k K, create func() (V, error)) (V, error) {
	c.mu.Lock()
	if v, ok := c.m[k]; ok {
		c.mu.Unlock()
		return v, nil
	}
	defer c.mu.Unlock() // create may panic
	return fill(&c.m, k, create)
}

// Get returns the value of k.
func (c *MutexCache[K, V]) Get(k K) (V, bool) {
	c.mu.Lock()
	v, ok := c.m[k]
	c.mu.Unlock()
	return v, ok
}

// Set makes v the value of k and returns the value that it replaced.
func (c *MutexCache[K, V]) Set(k K, v V) (old V, replaced bool) {
	c.mu.Lock()
	old, replaced = put(&c.m, k, v)
	c.overtake(k)
	c.mu.Unlock()
	return old, replaced
}

// Delete removes k and returns the value that it had.
func (c *MutexCache[K, V]) Delete(k K) (old V, deleted bool) {
	c.mu.Lock()
	old, deleted = c.m[k]
	delete(c.m, k)
	c.overtake(k)
	c.mu.Unlock()
	return old, deleted
}

// GetOrCreateMany returns the values of keys, and calls create once for those
// that have none.
func (c *MutexCache[K, V]) GetOrCreateMany(keys []K, create func([]K) (map[K]V, error)) (map[K]V, error) {
	got := make(map[K]V, len(keys))
	var missing []K
	c.mu.Lock()
	defer c.mu.Unlock() // create may panic
	for _, k := range keys {
		if v, ok := c.m[k]; ok {
			got[k] = v
		} else {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return got, nil
	}
	made, err := create(missing)
	if err != nil {
		return got, err
	}
	for _, k := range missing {
		if v, ok := made[k]; ok {
			put(&c.m, k, v)
			got[k] = v
		}
	}
	return got, nil
}

// Refresh makes a new value of k outside the lock, and keeps it unless k has
// been set or deleted meanwhile. Callers who come while create runs share that
// call. If k has no value, Refresh is GetOrCreate.
func (c *MutexCache[K, V]) Refresh(k K, create func() (V, error)) (V, error) {
	c.mu.Lock()
	if r, ok := c.renewals[k]; ok {
		c.mu.Unlock()
		<-r.done
		return r.v, r.err
	}
	if _, ok := c.m[k]; !ok {
		defer c.mu.Unlock() // create may panic
		return fill(&c.m, k, create)
	}
	r := &renewal[V]{done: make(chan struct{}), err: errNotCreated}
	put(&c.renewals, k, r)
	c.mu.Unlock()
	defer c.renewed(k, r)
	v, err := create()
	if err == nil {
		r.v = v
	}
	r.err = err
	return r.v, r.err
}

// renewal is a Refresh that is under way, unless it has been overtaken.
type renewal[V any] struct {
	done chan struct{}
	v    V
	err  error
}

func (c *MutexCache[K, V]) renewed(k K, r *renewal[V]) {
	c.mu.Lock()
	if c.renewals[k] == r {
		delete(c.renewals, k)
		if r.err == nil {
			c.m[k] = r.v
		}
	}
	c.mu.Unlock()
	close(r.done)
}

// overtake makes what a Refresh of k is about to make too late.
func (c *MutexCache[K, V]) overtake(k K) {
	if len(c.renewals) > 0 {
		delete(c.renewals, k)
	}
}

// RWMutexCache lets hits share the lock, and looks again under the exclusive
// one before it creates.
type RWMutexCache[K comparable, V any] struct {
	mu sync.RWMutex
	m  map[K]V
}

// GetOrCreate returns the value of k and creates it if there is none.
func (c *RWMutexCache[K, V]) GetOrCreate(k K, create func() (V, error)) (V, error) {
	c.mu.RLock()
	v, ok := c.m[k]
	c.mu.RUnlock()
	if ok {
		return v, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock() // create may panic
	if v, ok := c.m[k]; ok {
		return v, nil
	}
	return fill(&c.m, k, create)
}

// Get returns the value of k.
func (c *RWMutexCache[K, V]) Get(k K) (V, bool) {
	c.mu.RLock()
	v, ok := c.m[k]
	c.mu.RUnlock()
	return v, ok
}

// Set makes v the value of k and returns the value that it replaced.
func (c *RWMutexCache[K, V]) Set(k K, v V) (old V, replaced bool) {
	c.mu.Lock()
	old, replaced = put(&c.m, k, v)
	c.mu.Unlock()
	return old, replaced
}

// Delete removes k and returns the value that it had.
func (c *RWMutexCache[K, V]) Delete(k K) (old V, deleted bool) {
	c.mu.Lock()
	old, deleted = c.m[k]
	delete(c.m, k)
	c.mu.Unlock()
	return old, deleted
}

func fill[K comparable, V any](m *map[K]V, k K, create func() (V, error)) (V, error) {
	v, err := create()
	if err != nil {
		var zero V
		return zero, err
	}
	put(m, k, v)
	return v, nil
}

func put[K comparable, V any](m *map[K]V, k K, v V) (old V, replaced bool) {
	if *m == nil {
		*m = make(map[K]V)
	}
	old, replaced = (*m)[k]
	(*m)[k] = v
	return old, replaced
}

// OnceValuesCache is the common way to create outside a lock: a sync.Map of
// sync.OnceValues functions. The create function may be kept, so each call
// allocates it if it captures anything.
type OnceValuesCache[K comparable, V any] struct{ m sync.Map }

// onceValues makes functions comparable, for CompareAndDelete.
type onceValues[V any] struct{ get func() (V, error) }

// GetOrCreate returns the value of k and creates it if there is none.
func (c *OnceValuesCache[K, V]) GetOrCreate(k K, create func() (V, error)) (V, error) {
	if o, ok := c.m.Load(k); ok {
		return o.(*onceValues[V]).get()
	}
	o := new(onceValues[V])
	o.get = sync.OnceValues(func() (v V, err error) {
		created := false
		defer func() {
			if !created {
				c.m.CompareAndDelete(k, o)
			}
		}()
		if v, err = create(); err != nil {
			var zero V
			return zero, err
		}
		created = true
		return v, nil
	})
	now, _ := c.m.LoadOrStore(k, o)
	return now.(*onceValues[V]).get()
}

// Get returns the value of k. It waits while the value is created.
func (c *OnceValuesCache[K, V]) Get(k K) (v V, ok bool) {
	if o, ok := c.m.Load(k); ok {
		return o.(*onceValues[V]).value()
	}
	return v, false
}

func (o *onceValues[V]) value() (V, bool) {
	v, err := o.get()
	return v, err == nil
}

// Set makes v the value of k and returns the value that it replaced. Those who
// wait for a creation of k still get what that creates.
func (c *OnceValuesCache[K, V]) Set(k K, v V) (old V, replaced bool) {
	if o, ok := c.m.Swap(k, &onceValues[V]{func() (V, error) { return v, nil }}); ok {
		return o.(*onceValues[V]).value()
	}
	return old, false
}

// Delete removes k and returns the value that it had.
func (c *OnceValuesCache[K, V]) Delete(k K) (old V, deleted bool) {
	if o, ok := c.m.LoadAndDelete(k); ok {
		return o.(*onceValues[V]).value()
	}
	return old, false
}

// SyncMapCache is a sync.Map of values with a sync.Once each. It does what
// OnceValuesCache does without keeping the create function.
type SyncMapCache[K comparable, V any] struct{ m sync.Map }

type onceEntry[V any] struct {
	once sync.Once
	v    V
	err  error
}

var errNotCreated = errors.New("locked: the create function did not return")

// GetOrCreate returns the value of k and creates it if there is none.
func (c *SyncMapCache[K, V]) GetOrCreate(k K, create func() (V, error)) (V, error) {
	e, ok := c.m.Load(k)
	if !ok {
		e, _ = c.m.LoadOrStore(k, &onceEntry[V]{err: errNotCreated})
	}
	return c.result(k, e.(*onceEntry[V]), create)
}

func (c *SyncMapCache[K, V]) result(k K, e *onceEntry[V], create func() (V, error)) (V, error) {
	e.once.Do(func() {
		defer func() {
			if e.err != nil { // create failed, panicked or called Goexit
				c.m.CompareAndDelete(k, e)
			}
		}()
		v, err := create()
		if err == nil {
			e.v = v
		}
		e.err = err
	})
	return e.v, e.err
}

// Get returns the value of k. It waits while the value is created.
func (c *SyncMapCache[K, V]) Get(k K) (v V, ok bool) {
	if e, ok := c.m.Load(k); ok {
		return e.(*onceEntry[V]).value()
	}
	return v, false
}

func (e *onceEntry[V]) value() (V, bool) {
	e.once.Do(func() {})
	return e.v, e.err == nil
}

// Set makes v the value of k and returns the value that it replaced. Those who
// wait for a creation of k still get what that creates.
func (c *SyncMapCache[K, V]) Set(k K, v V) (old V, replaced bool) {
	e := &onceEntry[V]{v: v}
	e.once.Do(func() {})
	if was, ok := c.m.Swap(k, e); ok {
		return was.(*onceEntry[V]).value()
	}
	return old, false
}

// Delete removes k and returns the value that it had.
func (c *SyncMapCache[K, V]) Delete(k K) (old V, deleted bool) {
	if was, ok := c.m.LoadAndDelete(k); ok {
		return was.(*onceEntry[V]).value()
	}
	return old, false
}
