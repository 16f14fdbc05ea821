package oncecache

import (
	"iter"
	"log/slog"
	"time"
)

// Stats has the counts of a cache since it was made, which never go down, and its weight.
//
// Hits, Misses and Joined are zero without Config.RecordStats, because each hit would
// write to shared memory. Their look-ups are those of Get, GetOrCreate,
// GetOrCreateContext, LoadOrCreate, Acquire and Wait, and of each key of GetOrCreateMany.
type Stats struct {
	Hits   uint64 // look-ups that found a value
	Misses uint64 // look-ups that did not: the key was absent, being created, or had an error that is kept
	Joined uint64 // calls, or keys of a batch, that met a creation of another call and waited for it

	Created  uint64 // create functions that returned a value, or ErrNotModified
	Failed   uint64 // create functions that returned an error
	Panicked uint64 // create functions that panicked or called runtime.Goexit
	TimedOut uint64 // creations that took longer than Config.CreateTimeout
	Evicted  uint64 // values, and errors that were kept, that had to make room
	Idle     uint64 // values, and errors that were kept, that were idle
	Expired  uint64 // values that were removed because Config.TTL, or their renewal, had set an end to them
	Closed   uint64 // calls of Config.Close that have ended

	// CreateTime is how long all creations took whose function has ended: from when they
	// began, as in [Flight], until the end of the function. A batch counts for each of its
	// keys. It is zero without Config.RecordStats and Config.OnCreate.
	CreateTime time.Duration

	// Weight is the sum of the weights of the values that are there, with
	// Config.MaxWeight; at most math.MaxInt64.
	Weight int64

	// Recorded is Config.RecordStats: without it, zero Hits say nothing. It is not logged.
	Recorded bool
}

// LogValue returns the counts that are not zero as a group.
func (s Stats) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, c := range []struct {
		name string
		n    uint64
	}{
		{"hits", s.Hits}, {"misses", s.Misses}, {"joined", s.Joined},
		{"created", s.Created}, {"failed", s.Failed}, {"panicked", s.Panicked},
		{"timed_out", s.TimedOut}, {"evicted", s.Evicted}, {"idle", s.Idle}, {"expired", s.Expired}, {"closed", s.Closed},
	} {
		if c.n != 0 {
			attrs = append(attrs, slog.Uint64(c.name, c.n))
		}
	}
	if s.CreateTime != 0 {
		attrs = append(attrs, slog.Duration("create_time", s.CreateTime))
	}
	if s.Weight != 0 {
		attrs = append(attrs, slog.Int64("weight", s.Weight))
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
	s := Stats{
		Created: uint64(r.created()), Failed: uint64(b.failed.Load()), Panicked: uint64(b.panicked.Load()),
		TimedOut: uint64(b.timedOut.Load()), Evicted: uint64(b.evicted.Load()), Closed: uint64(b.closings.Load()),
		Idle: uint64(b.idled.Load()), Expired: uint64(b.expired.Load()), CreateTime: time.Duration(b.createTime.Load()), Weight: b.weight.Load(),
	}
	if r.recorder != nil {
		s.Hits, s.Misses, s.Joined, s.Recorded = r.recorder.lookupCounts()
	}
	return s
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
		p := e.joinable()
		if p.creating() && !yield(Flight[K]{Key: e.key, Since: r.accounting.epoch.Add(p.since - longAgo), Waiting: p.waiting()}) {
			return false
		}
	}
	return true
}
