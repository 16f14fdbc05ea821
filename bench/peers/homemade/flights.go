package homemade

import (
	"context"
	"sync"

	"golang.org/x/sync/singleflight"
)

// Flights is golang.org/x/sync/singleflight v0.24.0 behind a map with a
// sync.RWMutex: singleflight alone remembers nothing. There are three ways to
// write its look-up, and one cache uses one of them.
//
// Values cross singleflight as any, and a panic in the create function reaches
// every waiter as a panic, or ends the process.
type Flights[V any] struct {
	// Missed, if it is set, is called by a caller that has not found its key.
	Missed func()

	create  func(context.Context, string) (V, error)
	flights singleflight.Group
	mu      sync.RWMutex
	values  map[string]V
}

// NewFlights returns an empty cache that makes its values by create.
func NewFlights[V any](create func(context.Context, string) (V, error)) *Flights[V] {
	return &Flights[V]{create: create, values: make(map[string]V)}
}

// Get is the short way: it looks into the map, and else lets a flight create.
func (c *Flights[V]) Get(key string) (V, error) {
	if v, ok := c.Peek(key); ok {
		return v, nil
	}
	return c.do(key, false)
}

// GetChecked is Get whose flight looks into the map once more, because the
// flight of a moment ago may have filled it.
func (c *Flights[V]) GetChecked(key string) (V, error) {
	if v, ok := c.Peek(key); ok {
		return v, nil
	}
	return c.do(key, true)
}

// GetDo is GetChecked without the first look: each call is a flight, or joins
// one, and so hits of a key wait for each other.
func (c *Flights[V]) GetDo(key string) (V, error) { return c.do(key, true) }

func (c *Flights[V]) do(key string, check bool) (V, error) {
	c.noteMiss()
	v, err, _ := c.flights.Do(key, func() (any, error) { return c.fly(context.Background(), key, check) })
	if err != nil {
		var none V
		return none, err
	}
	return v.(V), nil
}

// GetContext is GetChecked for callers who may leave: a flight has a context
// that does not end with that of its first caller.
func (c *Flights[V]) GetContext(ctx context.Context, key string) (V, error) {
	if v, ok := c.Peek(key); ok {
		return v, nil
	}
	c.noteMiss()
	result := c.flights.DoChan(key, func() (any, error) { return c.fly(context.WithoutCancel(ctx), key, true) })
	var none V
	select {
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		v, _ := r.Val.(V) // a nil interface is no V
		return v, nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// fly is what a flight does.
func (c *Flights[V]) fly(ctx context.Context, key string, check bool) (any, error) {
	if check {
		if v, ok := c.Peek(key); ok {
			return v, nil
		}
	}
	v, err := c.create(ctx, key)
	if err != nil {
		return nil, err
	}
	c.Set(key, v)
	return v, nil
}

func (c *Flights[V]) noteMiss() {
	if c.Missed != nil {
		c.Missed()
	}
}

// Peek returns the value of key, if it is in the map.
func (c *Flights[V]) Peek(key string) (V, bool) {
	c.mu.RLock()
	v, ok := c.values[key]
	c.mu.RUnlock()
	return v, ok
}

// Set puts v into the map.
func (c *Flights[V]) Set(key string, v V) {
	c.mu.Lock()
	c.values[key] = v
	c.mu.Unlock()
}

// Delete removes key from the map.
func (c *Flights[V]) Delete(key string) {
	c.mu.Lock()
	delete(c.values, key)
	c.mu.Unlock()
}

// Forget is Delete, after which the next caller does not join a flight that is
// under way.
func (c *Flights[V]) Forget(key string) {
	c.flights.Forget(key)
	c.Delete(key)
}
