package oncecache

import (
	"iter"
	"log/slog"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Stats has the counts of a cache since it was made, which never go down, and its weight.
//
// Hits, Misses and Joined are zero without RecordStats. Their look-ups are those of Get, GetOrCreate,
// GetOrCreateContext, Load, Acquire and Wait, and of each key of GetOrCreateMany. Joined is of these calls,
// and of a Refresh of a key that has no value.
type Stats struct {
	Hits   uint64 // look-ups that found a value
	Misses uint64 // look-ups that did not
	Joined uint64 // how often a call, or a key of a batch, met a creation of another call and waited for it

	Created  uint64 // create functions that returned a value, or ErrNotModified
	Failed   uint64 // create functions that returned an error
	Panicked uint64 // create functions that panicked or called runtime.Goexit
	TimedOut uint64 // creations that took longer than CreateTimeout
	Renewals uint64 // renewals that have begun in the background; how their functions ended counts above, too
	Evicted  uint64 // values, and kept errors, that had to make room
	Idle     uint64 // values, and kept errors, that were idle
	Expired  uint64 // values that expired
	Closed   uint64 // calls of Config.Close that have ended

	// CreateTime is how long all creations took whose function has ended, for each key of a batch. It is
	// zero without RecordStats and OnCreate.
	CreateTime time.Duration

	Weight   int64 // the sum of the weights of the values, with MaxWeight
	Recorded bool  // RecordStats: without it, zero Hits say nothing. It is not logged
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
		{"timed_out", s.TimedOut}, {"renewals", s.Renewals}, {"evicted", s.Evicted}, {"idle", s.Idle}, {"expired", s.Expired}, {"closed", s.Closed},
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

// Stats returns the counts of the cache so far. They are exact while no call changes the cache; a timeout is
// counted a moment after its callers may have returned.
//
// Stats is wait-free. It takes effect for each count when that is read.
func (c *Cache[K, V]) Stats() Stats {
	r := c.shared()
	a := r.accounting // LP(Stats)
	s := Stats{
		Created: uint64(a.created.Load()), Failed: uint64(a.failed.Load()), Panicked: uint64(a.panicked.Load()),
		TimedOut: uint64(a.timedOut.Load()), Renewals: uint64(a.renewals.Load()),
		Evicted: uint64(a.evicted.Load()), Idle: uint64(a.idled.Load()), Expired: uint64(a.expired.Load()), Closed: uint64(a.closings.Load()),
		CreateTime: time.Duration(a.createTime.Load()), Recorded: r.lookups != nil,
	}
	if r.order != nil {
		s.Weight = r.order.weight.Load()
	}
	for i := range r.lookups {
		of := &r.lookups[i]
		s.Hits += uint64(of.hits.Load())
		s.Misses += uint64(of.misses.Load())
		s.Joined += uint64(of.joined.Load())
	}
	return s
}

// Len returns the number of keys that have a value. It is exact while no call changes the cache, no creation
// starts or ends and no value expires, and otherwise off by at most the number of these. A creation may end a
// moment after its caller's return.
//
// Len is wait-free. It takes effect when its counters are read, one by one.
func (c *Cache[K, V]) Len() int {
	r := c.shared()
	if r.closed() {
		return 0
	}
	a := r.accounting
	return max(0, r.entries.Len()-tally(a.work.Load()).creating()+int(a.aside.Load())) // LP(Len)
}

// Keys returns an iterator over the keys that [Cache.All] would yield.
//
// Keys is blocking on the mutex of one bucket at a time, and never inside the loop body. It takes effect for
// each key at some moment since the loop began.
func (c *Cache[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) { c.All()(func(k K, _ V) bool { return yield(k) }) } // LP(Keys): in All
}

// All returns an iterator over the keys that have a value, and the values, in no order. It is not a snapshot:
// it yields each key at most once, every key that has a value throughout, and some of the keys that come or go
// meanwhile, each with a value that it had since the loop began. The loop body may call any method.
//
// All is blocking on the mutex of one bucket at a time, and never inside the loop body. It takes effect for
// each key at some moment since the loop began.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := range c.shared().entries.All() { // LP(All)
			if e.has() && !yield(e.key, e.value) {
				return
			}
		}
	}
}

// lookupStripe counts look-ups of some processors, on a cache line of its own.
type lookupStripe struct {
	hits, misses, joined atomics.Gauge
	_                    [atomics.CacheLineSize - 3*8]byte
}

// countLookup counts a look-up that has found e, or nil.
func (r *root[K, V]) countLookup(e *entry[K, V]) {
	s := &r.lookups[atomics.Stripe(len(r.lookups))]
	if e.has() {
		s.hits.Add(1)
	} else {
		s.misses.Add(1)
	}
}

// countJoined counts a caller that is about to wait for e, if that is being created, unless the cache
// is closed: then e ends before its function is called.
func (r *root[K, V]) countJoined(e *entry[K, V]) {
	if e.state.Load().creating() && !tally(r.accounting.work.Load()).closed() {
		r.lookups[atomics.Stripe(len(r.lookups))].joined.Add(1)
	}
}

// recordEnd records a create function for k that has ended so, and began at since. It returns what
// is to be called when others have the result; Close waits for that.
func (r *root[K, V]) recordEnd(k K, since time.Duration, how *result) (tell func()) {
	listener := r.config.OnCreate
	if how.err == errAgain { // then it was not called
		return func() {}
	}
	took := r.now() - since
	r.accounting.createTime.Add(int64(took))
	if listener == nil {
		return func() {}
	}
	err := how.err
	if how.stays {
		err = nil
	}
	r.accounting.begin(onePending)
	return func() {
		defer r.accounting.finish(onePending)
		r.guard(fromOnCreate, func() { listener(k, took, err) })
	}
}

// Flight describes a creation that is under way.
type Flight[K comparable] struct {
	Key     K
	Since   time.Time // when it began
	Waiting int       // goroutines that wait for it, and do not run its function
}

// InFlight returns an iterator over the creations that are under way, in no order, with those of Refresh, but
// not those of keys that Delete has removed. It is not a snapshot; the loop body may call any method.
//
// InFlight is blocking on the mutex of one bucket at a time, and never inside the loop body. It takes effect for
// each key at some moment since the loop began.
func (c *Cache[K, V]) InFlight() iter.Seq[Flight[K]] {
	return func(yield func(Flight[K]) bool) {
		r := c.shared()
		for e := range r.entries.All() { // LP(InFlight)
			s := e.state.Load()
			if made := s.making(); made != nil {
				s = made.state.Load()
			}
			if !s.creating() {
				continue
			}
			f := s.flight
			if !yield(Flight[K]{Key: e.key, Since: r.moment(f.since), Waiting: f.waiters()}) {
				return
			}
		}
	}
}

// Info is what a cache knows of a value beside it.
type Info struct {
	Created time.Time // when it was made, set, or found not modified; zero without bounds or times
	Expires time.Time // when its TTL ends; zero: never
	Leases  int       // how many hold it; zero in a cache that does not count them
}

// Info returns what the cache knows about the value of k, if there is one. It does not count as a
// use of the value.
//
// Info is blocking on the mutex of the order, and without one wait-free. It takes effect when k is looked up.
func (c *Cache[K, V]) Info(k K) (info Info, ok bool) {
	r := c.shared()
	e := r.entries.Load(r.at(k)) // LP(Info)
	if !e.has() {
		return info, false
	}
	s := e.state.Load()
	if s == nil {
		return info, true
	}
	if s.users != nil {
		info.Leases = int(s.users.count())
	}
	if n := s.node; n != nil {
		r.order.mu.Lock()
		defer r.order.mu.Unlock()
		info.Created = r.moment(n.created)
		if n.life != nil && n.life.expires != never {
			info.Expires = r.moment(n.life.expires)
		}
	}
	return info, true
}

// moment returns the time of a moment of the cache.
func (r *root[K, V]) moment(at time.Duration) time.Time { return r.accounting.epoch.Add(at - longAgo) }
