// Package model has the sequential model of a Cache. See internal/tools/model.
package model

import "maps"

// Cache is what oncecache.Cache should do. A creation is Begin and End, and so is a Refresh
// that is Renew and End.
type Cache struct {
	ready    map[int]int
	flights  map[int]*Flight // in flight and not forgotten
	renewals map[int]*Flight // likewise, of keys that have a value
}

// Flight is what those who take part in a creation get, once it is over.
type Flight struct {
	Over  bool
	Value int
	Err   error
	Given bool // the value came from elsewhere while the function ran: from Set
}

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{map[int]int{}, map[int]*Flight{}, map[int]*Flight{}} }

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

// Renew is Begin for Refresh: beside a value, the flight is one of its own.
func (c *Cache) Renew(k int) (f *Flight, creates bool) {
	if _, ok := c.ready[k]; !ok {
		return c.Begin(k)
	}
	if c.renewals[k] == nil {
		c.renewals[k], creates = &Flight{}, true
	}
	return c.renewals[k], creates
}

// End is the second half of both, for the caller that created.
func (c *Cache) End(k int, f *Flight, v int, err error) {
	if f.Over {
		return // Set was here
	}
	*f = Flight{Over: true, Value: v, Err: err}
	switch f {
	case c.flights[k]:
		delete(c.flights, k)
	case c.renewals[k]:
		delete(c.renewals, k)
	default:
		return // Delete was here
	}
	if err == nil {
		c.ready[k] = v
	}
}

// Creates reports whether k is being created.
func (c *Cache) Creates(k int) bool { return c.flights[k] != nil }

// Renewal returns the Refresh of the value of k that is under way, or nil.
func (c *Cache) Renewal(k int) *Flight { return c.renewals[k] }

func (c *Cache) Get(k int) (int, bool) { v, ok := c.ready[k]; return v, ok }
func (c *Cache) All() map[int]int      { return maps.Clone(c.ready) }

func (c *Cache) Set(k, v int) (old int, replaced bool) {
	c.give(k, v)
	old, replaced = c.ready[k]
	c.ready[k] = v
	return old, replaced
}

// give ends what is under way for k in a value of Set.
func (c *Cache) give(k, v int) {
	for _, flights := range []map[int]*Flight{c.flights, c.renewals} {
		if f := flights[k]; f != nil {
			*f = Flight{Over: true, Value: v, Given: true}
			delete(flights, k)
		}
	}
}

// SetIfAbsent returns the value that k has then, or 0 if it is being created.
func (c *Cache) SetIfAbsent(k, v int) (actual int, stored bool) {
	if now, ok := c.ready[k]; ok || c.flights[k] != nil {
		return now, false
	}
	c.ready[k] = v
	return v, true
}

// Delete forgets what is under way.
func (c *Cache) Delete(k int) (old int, deleted bool) {
	old, deleted = c.ready[k]
	delete(c.ready, k)
	delete(c.flights, k)
	delete(c.renewals, k)
	return old, deleted
}

// CompareAndDelete forgets a Refresh of the value.
func (c *Cache) CompareAndDelete(k, v int) bool {
	now, ok := c.ready[k]
	if ok && now == v {
		delete(c.ready, k)
		delete(c.renewals, k)
	}
	return ok && now == v
}

// Lose takes away the value of k, as no call does. A Refresh of it becomes the creation of k.
func (c *Cache) Lose(k int) {
	delete(c.ready, k)
	if f := c.renewals[k]; f != nil {
		delete(c.renewals, k)
		c.flights[k] = f
	}
}
