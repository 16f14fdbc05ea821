package main

import (
	"context"
	"sync"

	"golang.org/x/sync/singleflight"
)

// ownMap is what both ways of writing it keep values in.
type ownMap[V any] struct {
	mu     sync.RWMutex
	values map[string]V
}

func (m *ownMap[V]) load(key string) (V, bool) {
	m.mu.RLock()
	v, ok := m.values[key]
	m.mu.RUnlock()
	return v, ok
}

func (m *ownMap[V]) set(key string, v V) {
	m.mu.Lock()
	m.values[key] = v
	m.mu.Unlock()
}

func (m *ownMap[V]) delete(key string) {
	m.mu.Lock()
	delete(m.values, key)
	m.mu.Unlock()
}

var plainPeer = peer{
	name:   "singleflight",
	module: "golang.org/x/sync",
	uses:   "`Group.Do` behind a map with a `sync.RWMutex`, the short way: look into the map, else `Do` a function that creates and stores",
	lacks: map[feature]string{
		contexts: "`Do` takes no context",
		cancels:  "`Do` takes no context",
		deletes:  "the short way deletes from the map only",
		pairKeys: "keys are strings",
		listener: "the map is the program's own",
		loops:    "the map is the program's own",
		closes:   "the map is the program's own",
		leases:   "the map is the program's own",
		captures: "up to the code around it",
	},
	open: newPlain[*engine],
	anys: newPlain[any],
}

type plainCache[V any] struct {
	ownMap[V]
	flights singleflight.Group
	config  config[string, V]
}

func newPlain[V any](c config[string, V]) cache[string, V] {
	return &plainCache[V]{ownMap: ownMap[V]{values: make(map[string]V)}, config: c}
}

func (c *plainCache[V]) get(_ context.Context, key string) (V, error) {
	if v, ok := c.load(key); ok {
		return v, nil
	}
	if c.config.missed != nil {
		c.config.missed()
	}
	v, err, _ := c.flights.Do(key, func() (any, error) {
		v, err := c.config.create(context.Background(), key)
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

var carefulPeer = peer{
	name:   "singleflight, with care",
	module: "golang.org/x/sync",
	uses:   "`Group.DoChan` in a `select` with the caller's context; the flight has a context without cancellation and looks into the map once more; deleting is also `Forget`",
	lacks: map[feature]string{
		cancels:  "a flight does not know who waits for it, so that its context had better not end",
		pairKeys: "keys are strings",
		listener: "the map is the program's own",
		loops:    "the map is the program's own",
		closes:   "the map is the program's own",
		leases:   "the map is the program's own",
		captures: "up to the code around it",
	},
	open: newCareful[*engine],
	anys: newCareful[any],
}

type carefulCache[V any] struct {
	ownMap[V]
	flights singleflight.Group
	config  config[string, V]
}

func newCareful[V any](c config[string, V]) cache[string, V] {
	return &carefulCache[V]{ownMap: ownMap[V]{values: make(map[string]V)}, config: c}
}

func (c *carefulCache[V]) get(ctx context.Context, key string) (V, error) {
	if v, ok := c.load(key); ok {
		return v, nil
	}
	if c.config.missed != nil {
		c.config.missed()
	}
	result := c.flights.DoChan(key, func() (any, error) {
		if v, ok := c.load(key); ok {
			return v, nil
		}
		v, err := c.config.create(context.WithoutCancel(ctx), key)
		if err != nil {
			return nil, err
		}
		c.set(key, v)
		return v, nil
	})
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

func (c *carefulCache[V]) delete(key string) {
	c.flights.Forget(key)
	c.ownMap.delete(key)
}
