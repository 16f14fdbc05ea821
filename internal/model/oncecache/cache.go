// Package model has the sequential model of a Cache. See internal/model.
package model

import "maps"

// Cache is what oncecache.Cache should do. A creation is Begin and End.
type Cache struct {
	ready   map[int]int
	flights map[int]*Flight // in flight and not forgotten
}

// Flight is what those who take part in a creation get, once it is over.
type Flight struct {
	Over  bool
	Value int
	Err   error
	Given bool // the value came from elsewhere while the function ran: from Set
}

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{map[int]int{}, map[int]*Flight{}} }

// Begin is the first half of GetOrCreate: what the caller takes part in, and
// whether it has to create.
func (c *Cache) Begin(k int) (f *Flight, creates bool) {
	if v, ok := c.ready[k]; ok {
		return &Flight{Over: true, Value: v}, false
	}
	if c.flights[k] == nil {
		c.flights[k], creates = &Flight{}, true
	}
	return c.flights[k], creates
}

// End is the second half, for the caller that created.
func (c *Cache) End(k int, f *Flight, v int, err error) {
	if f.Over {
		return // Set was here
	}
	*f = Flight{Over: true, Value: v, Err: err}
	if c.flights[k] != f {
		return // Delete was here
	}
	delete(c.flights, k)
	if err == nil {
		c.ready[k] = v
	}
}

// Creates reports whether k is being created.
func (c *Cache) Creates(k int) bool { return c.flights[k] != nil }

func (c *Cache) Get(k int) (int, bool) { v, ok := c.ready[k]; return v, ok }
func (c *Cache) All() map[int]int      { return maps.Clone(c.ready) }

func (c *Cache) Set(k, v int) (old int, replaced bool) {
	if f, ok := c.flights[k]; ok {
		*f = Flight{Over: true, Value: v, Given: true}
		delete(c.flights, k)
	}
	old, replaced = c.ready[k]
	c.ready[k] = v
	return old, replaced
}

func (c *Cache) SetIfAbsent(k, v int) bool {
	if _, ok := c.ready[k]; ok || c.flights[k] != nil {
		return false
	}
	c.ready[k] = v
	return true
}

func (c *Cache) Delete(k int) (old int, deleted bool) {
	old, deleted = c.ready[k]
	delete(c.ready, k)
	delete(c.flights, k)
	return old, deleted
}

func (c *Cache) CompareAndDelete(k, v int) bool {
	now, ok := c.ready[k]
	if ok && now == v {
		delete(c.ready, k)
	}
	return ok && now == v
}
