package oncecache

import (
	"time"
	"unsafe"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A cache with Config.MaxEntries or Config.IdleTimeout keeps its entries in the
// order in which they came. A hit sets a mark, if it is not set, and moves
// nothing: so in steady state it writes nothing. Who adds an entry too many
// looks for one to evict: from the oldest towards the newest, beginning where
// the last search ended, it takes the first whose mark is not set, and clears
// those that it passes. That is SIEVE, by Yazhuo Zhang and others, NSDI 2024.

// mark is what a hit of a cache with an order writes.
type mark struct {
	// used has a bit for each of those who ask whether the entry was used since
	// they last asked. A hit stores both; who asks clears its own.
	used atomics.Uint32
}

const (
	usedForSieve = 1 << iota // since the hand has passed
	usedForIdle              // since the last sweep
	usedForBoth  = usedForSieve | usedForIdle
)

// touch notes that the entry was used.
func (m *mark) touch() {
	if m.used.Load() != usedForBoth {
		m.used.Store(usedForBoth)
	}
}

// held notes that the entry was in use until now. The search for a victim has
// seen the lease.
func (m *mark) held() {
	if m.used.Load()&usedForIdle == 0 {
		m.used.Or(usedForIdle)
	}
}

// asked reports whether the entry was used since the last call for this bit.
func (m *mark) asked(bit uint32) bool {
	return m.used.Load()&bit != 0 && m.used.And(^bit)&bit != 0
}

// standing is the place of an entry in the order.
type standing[K comparable, V any] struct {
	mark // first, so that a *mark can be converted back

	key   K
	entry *entry[K, V]

	// What follows is under order.mu.
	newer, older *standing[K, V]
	seen         time.Duration // when the entry was last found to have been used
	stage        stage
}

// stage is where a standing is. It only grows.
type stage uint8

const (
	coming stage = iota // not yet in the order
	there
	gone
)

// order lists the entries that are in the table and have an outcome, from the
// newest to the oldest.
type order[K comparable, V any] struct {
	max  int           // Config.MaxEntries; zero: no bound
	idle time.Duration // Config.IdleTimeout; zero: none

	mu             atomics.Mutex
	newest, oldest *standing[K, V]
	hand           *standing[K, V] // where the next search begins; nil: at the oldest
	len            int
	next           *sweeper // starts the next sweep, or has started one; nil: there is none
}

// sweeper is a timer that sweeps once.
type sweeper struct{ stop func() }

// stand returns the mark of a new entry, or nil if the cache has no order.
func (r *root[K, V]) stand(k K, e *entry[K, V]) *mark {
	if r.order == nil {
		return nil
	}
	return &(&standing[K, V]{key: k, entry: e}).mark
}

// standingOf converts a mark back.
func standingOf[K comparable, V any](m *mark) *standing[K, V] {
	// Safety: only stand makes marks, as the first field of a standing of the
	// same cache.
	return (*standing[K, V])(unsafe.Pointer(m))
}

// settled follows the end of a creation, or Set, that has left an entry in the
// table: the entry takes its place in the order, and others may have to go.
func (r *root[K, V]) settled(e *entry[K, V]) {
	if r.order == nil {
		return
	}
	p := e.state.Load()
	if p == nil || p.mark == nil {
		return // Close, or the timer, has come between
	}
	r.evict(r.order.add(r, standingOf[K, V](p.mark)))
}

// evict removes entries that have left the order.
func (r *root[K, V]) evict(out []*standing[K, V]) (evicted int) {
	insist(len(out), func(i int) {
		if r.evictOne(out[i]) {
			evicted++
		}
	})
	return evicted
}

func (r *root[K, V]) evictOne(s *standing[K, V]) bool {
	if !r.remove(s.entry) {
		return false
	}
	r.books.evicted.Add(1)
	r.retire(s.entry)
	return true
}

// add puts s in the order, unless its entry has left the table before, and
// takes out those for which there is no room then.
func (o *order[K, V]) add(r *root[K, V], s *standing[K, V]) (out []*standing[K, V]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.stage == gone {
		return nil
	}
	s.stage, s.older, o.newest = there, o.newest, s
	if s.older != nil {
		s.older.newer = s
	} else {
		o.oldest = s
	}
	o.len++
	if o.idle > 0 {
		s.seen = r.now()
		o.arm(r)
	}
	for o.max > 0 && o.len > o.max {
		v := o.victim(s)
		if v == nil {
			break // all are in use
		}
		o.remove(v)
		out = append(out, v)
	}
	return out
}

// victim returns the entry that has to make room for the newest, or nil if
// leases hold all others. The caller holds mu.
func (o *order[K, V]) victim(newest *standing[K, V]) *standing[K, V] {
	// The first time round clears all marks. Hits may set them again, so the
	// third does not ask.
	for i := range 3 * o.len {
		s := o.hand
		if s == nil {
			s = o.oldest
		}
		o.hand = s.newer
		if s != newest && (i >= 2*o.len || !s.asked(usedForSieve)) && !s.entry.leased() {
			return s
		}
	}
	return nil
}

// remove takes s out of the order. The caller holds mu.
func (o *order[K, V]) remove(s *standing[K, V]) {
	if o.hand == s {
		o.hand = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		o.newest = s.older
	}
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		o.oldest = s.newer
	}
	s.newer, s.older, s.stage = nil, nil, gone
	o.len--
}

// drop takes s out of the order because its entry has left the table.
func (o *order[K, V]) drop(s *standing[K, V]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.stage == there {
		o.remove(s)
	}
	s.stage = gone
	if o.len == 0 && o.next != nil {
		o.next.stop()
		o.next = nil
	}
}

// idlers takes out those that nobody has used for the timeout.
func (o *order[K, V]) idlers(r *root[K, V]) (out []*standing[K, V]) {
	now := r.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for s := o.oldest; s != nil; {
		newer := s.newer
		leased := s.entry.leased() // first: who ends a lease notes the use before
		switch {
		case s.asked(usedForIdle) || leased:
			s.seen = now
		case now-s.seen >= o.idle:
			o.remove(s)
			out = append(out, s)
		}
		s = newer
	}
	return out
}

// shortestSweep bounds how often a timer sweeps.
const shortestSweep = time.Millisecond

// arm starts the timer of the next sweep, if there is none. The caller holds
// mu. The timer does not keep the cache alive.
func (o *order[K, V]) arm(r *root[K, V]) {
	if o.next != nil {
		return
	}
	root, s := weak.Make(r), new(sweeper)
	s.stop = atomics.After(max(o.idle/2, shortestSweep), func() {
		if r := root.Value(); r != nil {
			r.tick(s)
		}
	})
	o.next = s
}

// tick sweeps for s, and starts the next timer if anything is left and none has
// been started since: the order may have been empty meanwhile.
func (r *root[K, V]) tick(s *sweeper) {
	o := r.order
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.next == s {
			o.next = nil
		}
		if o.len > 0 {
			o.arm(r)
		}
	}()
	r.sweep()
}

// Sweep removes the values that nobody has used for Config.IdleTimeout, and the
// errors whose time is over, and returns their number. With an IdleTimeout a
// timer does this too, and otherwise the failures of creations from time to
// time: it need not be called.
//
// Sweep is blocking on the mutex of one bucket at a time and, with an
// IdleTimeout, on that of the order of the entries. It takes effect for each key
// when the entry is removed.
func (c *Cache[K, V]) Sweep() int {
	r := c.root.Load()
	if r == nil {
		return 0
	}
	return r.sweep() // LP(Sweep)
}

func (r *root[K, V]) sweep() (removed int) {
	if o := r.order; o != nil && o.idle > 0 {
		removed = r.evict(o.idlers(r))
	}
	return removed + r.expireAll()
}

// expireAll removes the failures whose time is over.
func (r *root[K, V]) expireAll() (removed int) {
	if r.books.kept.Load() == 0 {
		return 0
	}
	for e := range r.entries.All() {
		if p := e.state.Load(); p.kept() && p.until <= r.now() && r.expire(e) {
			removed++
		}
	}
	return removed
}

const (
	firstExpiry = 64 // fewer failures than this are not worth looking for
	expiring    = 1<<63 - 1
)

// keptOne follows a failure that is kept. When there are many, and twice as many
// as the last time, it looks for those whose time is over.
func (r *root[K, V]) keptOne() {
	n, at := r.books.kept.Add(1), r.expireAt.Load()
	if n < max(at, firstExpiry) || at == expiring || !r.expireAt.CompareAndSwap(at, expiring) {
		return
	}
	r.expireAll()
	r.expireAt.Store(max(2*r.books.kept.Load(), int64(r.entries.Len())/2))
}
