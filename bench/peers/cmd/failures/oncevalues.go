package main

import (
	"context"
	"sync"
)

var oncePeer = peer{
	name: "OnceValues",
	uses: "`sync.Map` of `sync.OnceValues`; whoever gets an error deletes the entry it got it from, by identity",
	lacks: map[feature]string{
		contexts: "`OnceValues` takes no context",
		cancels:  "`OnceValues` takes no context",
		listener: "no notice of values that leave",
		closes:   "cannot be closed",
		leases:   "no leases",
		captures: "up to the code around it",
	},
	open:  newOnce[string, *engine],
	pairs: newOnce[pair, *engine],
	anys:  newOnce[string, any],
}

type onceCache[K comparable, V any] struct {
	values sync.Map // K to *onceEntry[V]
	config config[K, V]
}

type onceEntry[V any] struct{ get func() (V, error) }

func newOnce[K comparable, V any](c config[K, V]) cache[K, V] { return &onceCache[K, V]{config: c} }

func (c *onceCache[K, V]) get(_ context.Context, key K) (V, error) {
	e, ok := c.values.Load(key)
	if !ok {
		if c.config.missed != nil {
			c.config.missed()
		}
		e, _ = c.values.LoadOrStore(key, &onceEntry[V]{sync.OnceValues(func() (V, error) {
			return c.config.create(context.Background(), key)
		})})
	}
	v, err := e.(*onceEntry[V]).get()
	if err != nil {
		c.values.CompareAndDelete(key, e)
	}
	return v, err
}

func (c *onceCache[K, V]) set(key K, v V) {
	c.values.Store(key, &onceEntry[V]{func() (V, error) { return v, nil }})
}

func (c *onceCache[K, V]) delete(key K) { c.values.Delete(key) }

func (c *onceCache[K, V]) each(f func(K) bool) {
	c.values.Range(func(key, _ any) bool { return f(key.(K)) })
}
