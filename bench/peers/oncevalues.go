package peers

import "sync"

// onceCache is sync.Map with sync.OnceValues, the short way to create a value
// for each key once with the standard library of Go 1.26.
//
// A creation that failed is forgotten by identity, so that the next caller
// tries again as with the others; whoever asked meanwhile shares the error.
// One that panicked stays, and panics again for everyone who asks later.
type onceCache[V any] struct {
	create func(string) (V, error)
	values sync.Map // string to *onceValue[V]
}

type onceValue[V any] struct{ get func() (V, error) }

func newOnceCache[V any](create func(string) (V, error)) *onceCache[V] {
	return &onceCache[V]{create: create}
}

func (c *onceCache[V]) getOrCreate(key string) (V, error) {
	o, ok := c.values.Load(key)
	if !ok {
		o, _ = c.values.LoadOrStore(key, &onceValue[V]{
			sync.OnceValues(func() (V, error) { return c.create(key) }),
		})
	}
	v, err := o.(*onceValue[V]).get()
	if err != nil {
		c.values.CompareAndDelete(key, o)
	}
	return v, err
}

func (c *onceCache[V]) set(key string, v V) {
	c.values.Store(key, &onceValue[V]{func() (V, error) { return v, nil }})
}

func (c *onceCache[V]) delete(key string) { c.values.Delete(key) }
