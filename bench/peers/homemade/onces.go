package homemade

import "sync"

// Onces is sync.Map with sync.OnceValues, the short way to create a value for
// each key once with the standard library of Go 1.26.
//
// A creation that failed is forgotten by identity, so that the next caller
// tries again; whoever asked meanwhile shares the error. One that panicked
// stays, and panics again for everyone who asks later.
type Onces[K comparable, V any] struct {
	// Missed, if it is set, is called by a caller that has not found its key.
	Missed func()

	create func(K) (V, error)
	values sync.Map // K to *once[V]
}

type once[V any] struct{ get func() (V, error) }

// NewOnces returns an empty cache that makes its values by create.
func NewOnces[K comparable, V any](create func(K) (V, error)) *Onces[K, V] {
	return &Onces[K, V]{create: create}
}

// Get returns the value of key, which it creates if there is none.
func (c *Onces[K, V]) Get(key K) (V, error) {
	o, ok := c.values.Load(key)
	if !ok {
		if c.Missed != nil {
			c.Missed()
		}
		o, _ = c.values.LoadOrStore(key, &once[V]{
			sync.OnceValues(func() (V, error) { return c.create(key) }),
		})
	}
	v, err := o.(*once[V]).get()
	if err != nil {
		c.values.CompareAndDelete(key, o)
	}
	return v, err
}

// Set makes v the value of key.
func (c *Onces[K, V]) Set(key K, v V) {
	c.values.Store(key, &once[V]{func() (V, error) { return v, nil }})
}

// Delete removes key.
func (c *Onces[K, V]) Delete(key K) { c.values.Delete(key) }

// Clear removes all keys.
func (c *Onces[K, V]) Clear() { c.values.Clear() }

// Keys calls f for each key, until it returns false.
func (c *Onces[K, V]) Keys(f func(K) bool) {
	c.values.Range(func(key, _ any) bool { return f(key.(K)) })
}
