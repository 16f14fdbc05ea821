package model

import (
	"maps"
	"time"
)

// Owner is a Cache whose callers come and leave, whose values are closed when
// nobody uses them any more, in which time passes, and from which what has not
// been used may have to go.
type Owner struct {
	*Cache
	CacheSettings
	CacheStats
	Now  time.Duration
	Shut bool

	Pending int            // create functions that run, and open values
	Closed  map[int]bool   // by value
	Removed map[int]string // by value that is closed: why it left
	why     map[int]string // by value that has left its key
	users   map[int]int    // of values: leases, and the cache
	loose   map[int]bool   // by value that was set, and too heavy, in a cache that closes none: leases of it are not counted
	crews   map[*Flight]*crew

	failures map[int]failure // that are kept
	order
	expiry
}

// CacheSettings are those of the cache, and the errors that it makes.
type CacheSettings struct {
	Closes                     bool
	TTL                        func(k int, err error) time.Duration // nil: none are kept
	Lifetime                   func(k, v int) time.Duration         // nil: values do not expire
	CreateTimeout, IdleTimeout time.Duration
	MaxEntries                 int
	MaxWeight                  int64
	Weight                     func(v int) int64 // nil: there is no MaxWeight

	ErrClosed, ErrTimeout, ErrNotFound, ErrNotModified error
}

// CacheStats counts what has happened.
type CacheStats struct {
	Created, Failed, Panicked, TimedOut, Evicted, Idle, Expired int
	CreateTime                                                  time.Duration
}

// NewOwner returns an empty cache.
func NewOwner(s CacheSettings) *Owner {
	return &Owner{Cache: NewCache(), CacheSettings: s, Closed: map[int]bool{}, Removed: map[int]string{}, why: map[int]string{}, users: map[int]int{}, loose: map[int]bool{},
		crews: map[*Flight]*crew{}, failures: map[int]failure{}, expiry: expiry{map[int]time.Duration{}, map[int]time.Duration{}}}
}

// Dispose closes a value that has no key.
func (o *Owner) Dispose(v int) { o.take(v, 0) }

// take makes v the owner's.
func (o *Owner) take(v, users int) {
	delete(o.why, v)
	if o.Closes {
		o.Pending++
	}
	o.users[v] = users + 1
	o.unuse(v)
}

func (o *Owner) unuse(v int) {
	if o.users[v]--; o.Closes && o.users[v] == 0 {
		o.Pending, o.Closed[v] = o.Pending-1, true
		if o.Removed[v] = o.why[v]; o.why[v] == "" {
			o.Removed[v] = "Discarded" // it never was its key's
		}
	}
}

// bounded reports whether values have a place in the order, and counts whether leases are counted.
func (o *Owner) bounded() bool {
	return o.MaxEntries > 0 || o.Weight != nil || o.IdleTimeout > 0 || o.Lifetime != nil
}
func (o *Owner) counts() bool { return o.Closes || o.bounded() }

// leased reports whether anyone but the cache uses the value of k.
func (o *Owner) leased(k int) bool {
	v, ok := o.ready[k]
	return ok && o.users[v] > 1
}

// Get is also what every call does that finds a value.
func (o *Owner) Get(k int) (v int, ok bool) {
	if v, ok = o.ready[k]; ok {
		o.touch(k)
	}
	return v, ok
}

func (o *Owner) Set(k, v int) (old int, replaced bool) {
	if o.Shut {
		o.take(v, 0)
		return 0, false
	}
	o.give(k, v)
	if old, replaced = o.ready[k]; replaced && o.Closes && old == v {
		o.limit(k)
		o.touch(k)
		return old, true // the very value
	}
	o.store(k, v)
	return old, replaced
}

// store makes v the value of k, as the newest.
func (o *Owner) store(k, v int) {
	o.drop(k, "Replaced")
	if o.heavy(v) {
		o.loose[v] = !o.Closes
		o.take(v, 0)
		return
	}
	o.ready[k] = v
	o.take(v, 1)
	o.come(k)
}

// SetIfAbsent takes a failure for absent.
func (o *Owner) SetIfAbsent(k, v int) (actual int, stored bool) {
	if now, ok := o.ready[k]; ok || o.flights[k] != nil || o.Shut || o.heavy(v) {
		return now, false
	}
	o.store(k, v)
	return v, true
}

func (o *Owner) Delete(k int) (old int, deleted bool) {
	old, deleted = o.ready[k]
	delete(o.flights, k)
	o.drop(k, "Deleted")
	return old, deleted
}

// Clear deletes every key.
func (o *Owner) Clear() (removed int) {
	clear(o.flights)
	removed = len(o.ready)
	o.dropAll("Deleted")
	return removed
}

func (o *Owner) CompareAndDelete(k, v int) bool { return o.dropValue(k, v, "Deleted") }

// Discard is the removal of v, if k has it.
func (o *Owner) Discard(k, v int) bool { return o.dropValue(k, v, "Discarded") }

func (o *Owner) dropValue(k, v int, why string) bool {
	now, ok := o.ready[k]
	if ok && now == v {
		o.drop(k, why)
	}
	return ok && now == v
}

// Release ends a lease of v, which was not idle until now, but was not asked for again.
func (o *Owner) Release(v int) {
	for _, p := range o.places {
		if o.ready[p.key] == v {
			p.recent, p.last = true, o.Now
		}
	}
	o.unuse(v)
}

// dropAll is drop for every key.
func (o *Owner) dropAll(why string) {
	for k := range maps.Clone(o.ready) {
		o.drop(k, why)
	}
	for k := range maps.Clone(o.failures) {
		o.drop(k, why)
	}
}

// drop removes a value or a failure, if there is one. A Refresh of a value that has expired
// becomes the creation of the key.
func (o *Owner) drop(k int, why string) {
	v, ok := o.ready[k]
	if why != "Expired" {
		delete(o.renewals, k)
	}
	o.Lose(k)
	delete(o.failures, k)
	delete(o.ends, k)
	o.leave(k)
	if ok {
		o.why[v] = why
		o.unuse(v)
	}
}

// Close empties the cache.
func (o *Owner) Close() {
	o.Shut = true
	for f, c := range o.crews {
		if c.running && !f.Over && o.flights[c.key] != f && o.renewals[c.key] != f {
			c.grounded = c.grounded || !c.fixed || o.counts() // Delete has hidden it
		}
	}
	for _, flights := range []map[int]*Flight{o.flights, o.renewals} {
		for _, f := range flights {
			*f = Flight{Over: true, Err: o.ErrClosed}
		}
		clear(flights)
	}
	o.dropAll("Closed")
}
