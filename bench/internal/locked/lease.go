package locked

import "sync"

// LeaseCache closes a value when it has been deleted and nobody uses it any
// more: a map, a count of users beside each value, and a mutex for both, held
// while a value is created.
type LeaseCache[K comparable, V any] struct {
	Close func(K, V) // nil: nothing is closed

	mu sync.Mutex
	m  map[K]*leased[V]
}

type leased[V any] struct {
	v     V
	users int // and one while it is in the map
}

// Lease is the right to use a value.
type Lease[K comparable, V any] struct {
	c *LeaseCache[K, V]
	k K
	e *leased[V]
}

// Acquire returns a lease of the value of k, which it creates if there is none.
func (c *LeaseCache[K, V]) Acquire(k K, create func() (V, error)) (Lease[K, V], error) {
	c.mu.Lock()
	if e, ok := c.m[k]; ok {
		e.users++
		c.mu.Unlock()
		return Lease[K, V]{c, k, e}, nil
	}
	defer c.mu.Unlock() // create may panic
	v, err := create()
	if err != nil {
		return Lease[K, V]{}, err
	}
	e := &leased[V]{v, 2}
	put(&c.m, k, e)
	return Lease[K, V]{c, k, e}, nil
}

// Value returns the value.
func (l *Lease[K, V]) Value() V { return l.e.v }

// Release ends the lease; if it has ended, nothing happens.
func (l *Lease[K, V]) Release() {
	if l.e == nil {
		return
	}
	l.c.drop(l.k, l.e)
	l.e = nil
}

// Delete removes k.
func (c *LeaseCache[K, V]) Delete(k K) {
	c.mu.Lock()
	e, ok := c.m[k]
	delete(c.m, k)
	c.mu.Unlock()
	if ok {
		c.drop(k, e)
	}
}

// drop takes a user off, and closes the value after the last one.
func (c *LeaseCache[K, V]) drop(k K, e *leased[V]) {
	c.mu.Lock()
	e.users--
	last := e.users == 0
	c.mu.Unlock()
	if last && c.Close != nil {
		c.Close(k, e.v)
	}
}
