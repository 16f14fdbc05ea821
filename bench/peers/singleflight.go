package peers

import (
	"sync"

	"golang.org/x/sync/singleflight"
)

// flightCache is golang.org/x/sync/singleflight v0.24.0 behind a map, as its
// careful users write it: the map is read first, and looked at again inside
// the flight, because the flight of a moment ago may have filled it.
//
// singleflight alone remembers nothing, and a cache that sends its hits
// through Do makes them wait for each other. Values cross it as any. A panic
// in create reaches every waiter as a panic.
type flightCache[V any] struct {
	create  func(string) (V, error)
	flights singleflight.Group
	mu      sync.RWMutex
	values  map[string]V
}

func newFlightCache[V any](create func(string) (V, error)) *flightCache[V] {
	return &flightCache[V]{create: create, values: make(map[string]V)}
}

func (c *flightCache[V]) getOrCreate(key string) (V, error) {
	if v, ok := c.get(key); ok {
		return v, nil
	}
	return c.load(key)
}

func (c *flightCache[V]) load(key string) (V, error) {
	v, err, _ := c.flights.Do(key, func() (any, error) {
		if v, ok := c.get(key); ok {
			return v, nil
		}
		v, err := c.create(key)
		if err != nil {
			return nil, err
		}
		c.set(key, v)
		return v, nil
	})
	if err != nil {
		var none V
		return none, err
	}
	return v.(V), nil
}

func (c *flightCache[V]) get(key string) (V, bool) {
	c.mu.RLock()
	v, ok := c.values[key]
	c.mu.RUnlock()
	return v, ok
}

func (c *flightCache[V]) set(key string, v V) {
	c.mu.Lock()
	c.values[key] = v
	c.mu.Unlock()
}

func (c *flightCache[V]) delete(key string) {
	c.mu.Lock()
	delete(c.values, key)
	c.mu.Unlock()
}
