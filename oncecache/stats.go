package oncecache

import (
	"iter"
	"log/slog"
	"time"
)

// Stats has the counts of a cache since it was made. Hits are not counted, because each
// would write to shared memory.
type Stats struct {
	Created  uint64 // create functions that returned a value, or ErrNotModified
	Failed   uint64 // create functions that returned an error
	Panicked uint64 // create functions that panicked or called runtime.Goexit
	TimedOut uint64 // creations that took longer than Config.CreateTimeout
	Evicted  uint64 // values, and errors that were kept, that had to make room or were idle
	Expired  uint64 // values that were removed because Config.TTL, or their renewal, had set an end to them
	Closed   uint64 // calls of Config.Close that have ended
}

// LogValue returns the counts that are not zero as a group.
func (s Stats) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, c := range []struct {
		name string
		n    uint64
	}{
		{"created", s.Created}, {"failed", s.Failed}, {"panicked", s.Panicked},
		{"timed_out", s.TimedOut}, {"evicted", s.Evicted}, {"expired", s.Expired}, {"closed", s.Closed},
	} {
		if c.n != 0 {
			attrs = append(attrs, slog.Uint64(c.name, c.n))
		}
	}
	return slog.GroupValue(attrs...)
}

// Stats returns the counts of the cache so far. They are exact while no call changes the
// cache.
//
// Stats is wait-free. It takes effect for each count when that is read.
func (c *Cache[K, V]) Stats() Stats { return c.stats() }

func (c *core[K]) stats() Stats {
	r := c.root.Load()
	if r == nil {
		return Stats{}
	}
	b := r.accounting // LP(Stats)
	return Stats{
		Created: uint64(b.created.Load()), Failed: uint64(b.failed.Load()), Panicked: uint64(b.panicked.Load()),
		TimedOut: uint64(b.timedOut.Load()), Evicted: uint64(b.evicted.Load()), Expired: uint64(b.expired.Load()), Closed: uint64(b.closings.Load()),
	}
}

// Flight describes a creation that is under way.
type Flight[K comparable] struct {
	Key     K
	Since   time.Time // when it began
	Waiting int       // goroutines that wait for it, and do not run its function
}

// InFlight returns an iterator over the creations that are under way, in no order.
// Creations of keys that Delete has removed meanwhile are not among them. A creation
// whose Since is long ago may hang. The iterator is not a snapshot; the loop body may
// call any method.
//
// InFlight is blocking on the mutex of one bucket at a time, and never inside
// the loop body. It takes effect for each key at some moment since the loop
// began.
func (c *Cache[K, V]) InFlight() iter.Seq[Flight[K]] { return c.eachFlight }

func (c *core[K]) eachFlight(yield func(Flight[K]) bool) {
	r := c.root.Load()
	if r == nil {
		return
	}
	if r.eachFlight(yield) {
		if renewals := r.renewals.Load(); renewals != nil {
			renewals.root.Load().eachFlight(yield)
		}
	}
}

func (r *root[K]) eachFlight(yield func(Flight[K]) bool) (more bool) {
	for e := range r.entries.All() { // LP(InFlight)
		p := e.state.Load()
		if p.creating() && !yield(Flight[K]{Key: e.key, Since: r.accounting.epoch.Add(p.since), Waiting: p.waiting()}) {
			return false
		}
	}
	return true
}
