package oncecache

import (
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// order lists the entries with an outcome, from the newest to the oldest, in a cache with
// MaxEntries, MaxWeight, IdleTimeout, TTL or ErrorTTL, and has a heap of those that have to be
// looked at when some time comes: see deadlines.go.
//
// A hit sets used bits in the entry's mark, if they are not set, and moves nothing: in steady state it
// writes nothing. A call that adds an entry too many looks for one to evict: from the oldest towards the
// newest, beginning where the last search ended, it takes the first whose bit is not set, and clears the
// bits that it passes. That is SIEVE, by Yazhuo Zhang and others, NSDI 2024.
type order[K comparable, V any] struct {
	mu             atomics.Mutex
	newest, oldest *node[K, V]
	hand           *node[K, V] // where the next search begins; nil: at the oldest
	len            int
	weight         atomics.Gauge // the sum of all; Stats reads it
	max            int           // MaxEntries; 0: no bound
	maxWeight      int64         // MaxWeight; 0: no bound

	heap  byNext[K, V]
	timer *alarm // nil: none is under way
}

// node is the place of an entry in the order. Its entry and weight never change; the rest is
// under order.mu, once the entry is shared.
type node[K comparable, V any] struct {
	entry  *entry[K, V]
	weight int64 // of the value; 0 without MaxWeight

	newer, older *node[K, V]
	stage        stage
	created      time.Duration   // when the value was made or set, or found not modified
	life         *lifetime[K, V] // nil: it need not be looked at some time
}

// stage is where a node is. It only grows.
type stage uint8

const (
	coming stage = iota // not yet in the order
	there
	left
)

// leased reports whether anyone holds a lease of the entry.
func (n *node[K, V]) leased() bool {
	s := n.entry.state.Load()
	return s.users != nil && s.users.count() > 0
}

// prepare makes n the place of e, whose value has these limits, and which others do not find in the order yet.
func (o *order[K, V]) prepare(r *root[K, V], n *node[K, V], e *entry[K, V], l limits) {
	n.entry, n.weight = e, l.weight
	if r.timed {
		n.life = &lifetime[K, V]{node: n}
	}
	n.live(r, l)
	if l.until == atOnce {
		e.mark.bits.Store(expired)
	}
}

// add puts n in the order, unless it has been there or its entry has left the table before, and
// evicts the entries for which there is no room then.
func (o *order[K, V]) add(r *root[K, V], n *node[K, V]) {
	o.mu.Lock()
	var out []*node[K, V]
	switch {
	case n.stage != coming: // it has left already
	case n.entry.mark.isExpired():
		out = append(out, n)
	default:
		o.insert(r, n, o.newest)
		o.schedule(r, n)
		out = o.tooMany(n)
	}
	o.mu.Unlock()
	r.evictAll(out)
}

// insert puts n behind older, which is nil if there is no node. The caller holds mu.
func (o *order[K, V]) insert(r *root[K, V], n, older *node[K, V]) {
	n.stage = there
	if n.life != nil {
		n.life.seen, n.life.asks = n.created, r.idleAfter(n.created)
	}
	newer := (*node[K, V])(nil)
	if older != nil {
		newer = older.newer
	}
	o.link(older, n)
	o.link(n, newer)
	o.len++
	o.weight.Add(n.weight)
}

// link makes two nodes neighbours; nil stands for the end. The caller holds mu.
func (o *order[K, V]) link(older, newer *node[K, V]) {
	if newer != nil {
		newer.older = older
	} else {
		o.newest = older
	}
	if older != nil {
		older.newer = newer
	} else {
		o.oldest = newer
	}
}

// remove takes n out of the order. The caller holds mu.
func (o *order[K, V]) remove(n *node[K, V]) {
	if o.hand == n {
		o.hand = n.newer
	}
	o.link(n.older, n.newer)
	o.unschedule(n)
	n.newer, n.older, n.stage = nil, nil, left
	o.len--
	o.weight.Add(-n.weight)
}

// unlist takes n out of the order because its entry has left the table, and reports whether its
// value had expired: afterwards it does not.
func (o *order[K, V]) unlist(n *node[K, V]) (hasExpired bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n.stage == there {
		o.remove(n)
	}
	n.stage = left
	return n.entry.mark.isExpired()
}

// tooMany takes out the nodes for which there is no room beside n, or n itself if it has become too heavy
// since its value was weighed. The caller holds mu.
func (o *order[K, V]) tooMany(n *node[K, V]) (out []*node[K, V]) {
	if n != nil && n.weight > o.maxWeight {
		n.entry.mark.bits.Or(doomed) // also if it is leased, as if Delete came: no other leased entry is doomed
		o.remove(n)
		return append(out, n)
	}
	for o.max > 0 && o.len > o.max || o.maxWeight > 0 && o.weight.Load() > o.maxWeight {
		v := o.victim(n)
		if v == nil {
			break
		}
		o.remove(v)
		out = append(out, v)
	}
	return out
}

// manyLeased is how many leased entries a search for a victim passes before it leaves the rest to the next.
const manyLeased = 64

// victim dooms the entry that has to make room for the newest, and returns its node, or nil if
// leases hold all others, or very many. The caller holds mu.
func (o *order[K, V]) victim(newest *node[K, V]) *node[K, V] {
	leased := 0
	// The first round clears all bits. Hits may set them again, so the third does not ask.
	for i := range 3 * o.len {
		n := o.hand
		if n == nil {
			n = o.oldest
		}
		o.hand = n.newer
		asks := uint32(usedForSieve)
		if i >= 2*o.len {
			asks = 0
		}
		if n == newest {
			continue
		}
		if n.leased() { // it keeps its bit, as it is in use
			if leased++; leased == manyLeased {
				return nil
			}
		} else if !n.entry.mark.asked(asks) && n.entry.mark.doom(n.leased, asks, 0) {
			return n
		}
	}
	return nil
}

// succeed puts the entry of to into the table in the place of that of from, unless another call was
// faster, and to into the order, where from is, with the uses that were noted there. If from is being
// evicted, to is evicted instead, unless it has been used. Both happen at once, so that no call finds
// the new entry in the table while the old one still has its place in the order.
func (o *order[K, V]) succeed(r *root[K, V], to, from *node[K, V]) (replaced bool) {
	o.mu.Lock()
	if !r.entries.CompareAndSwap(r.at(to.entry.key), from.entry, to.entry) {
		o.mu.Unlock()
		return false
	}
	var out []*node[K, V]
	m, was := &to.entry.mark, &from.entry.mark
	switch {
	case m.isExpired() || was.is(doomed) && m.doom(to.leased, usedForBoth, was.bits.Load()&idle):
		to.stage = left
		out = append(out, to)
	case from.stage == there:
		m.bits.Or(was.bits.Load() & usedForBoth)
		o.insert(r, to, from)
		if to.life != nil {
			to.life.seen, to.life.asks = from.life.seen, from.life.asks
		}
	default: // from has not come yet, or has expired
		o.insert(r, to, o.newest)
	}
	if from.stage == there {
		o.remove(from)
	}
	from.stage = left // also if it has not come yet
	if to.stage == there {
		o.schedule(r, to)
		out = o.tooMany(to)
	}
	o.mu.Unlock()
	r.evictAll(out)
	return true
}

// SetMaxEntries changes Config.MaxEntries, and evicts what is beyond it, as far as leases allow. It returns an
// error, and changes nothing, if n is not above zero or the cache was made without MaxEntries.
//
// SetMaxEntries is blocking on the mutex of the order, and on that of one bucket at a time. It takes effect when
// the bound is changed, and for each key that it evicts when the entry is removed.
func (c *Cache[K, V]) SetMaxEntries(n int) error {
	r := c.shared()
	if n <= 0 || r.config.MaxEntries == 0 {
		return errBound("MaxEntries", int64(n))
	}
	r.order.bound(r, func(o *order[K, V]) { o.max = n }) // LP(SetMaxEntries)
	return nil
}

// SetMaxWeight changes Config.MaxWeight as [Cache.SetMaxEntries] changes MaxEntries.
//
// SetMaxWeight is blocking, and takes effect, as SetMaxEntries does.
func (c *Cache[K, V]) SetMaxWeight(w int64) error {
	r := c.shared()
	if w <= 0 || w > maxMaxWeight || r.config.MaxWeight == 0 {
		return errBound("MaxWeight", w)
	}
	r.order.bound(r, func(o *order[K, V]) { o.maxWeight = w }) // LP(SetMaxWeight)
	return nil
}

// bound changes a bound, and evicts what is beyond it.
func (o *order[K, V]) bound(r *root[K, V], change func(*order[K, V])) {
	o.mu.Lock()
	change(o)
	var out []*node[K, V]
	for range 2 * (o.len/manyLeased + 1) { // searches go round twice, though each may end at leases
		out = append(out, o.tooMany(nil)...)
	}
	o.mu.Unlock()
	r.evictAll(out)
}

// tooHeavy stands for the weight of a value that weighs more than MaxWeight.
const tooHeavy = -1

// maxMaxWeight keeps the sum of weights from overflowing before leases hold 2¹⁷ values of this weight each.
const maxMaxWeight = 1 << 46

// heavy reports whether a value of this weight is not to be kept.
func (o *order[K, V]) heavy(w int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return w > o.maxWeight
}

// evictAll evicts entries that are doomed or have expired. All of them leave the table before any is closed.
func (r *root[K, V]) evictAll(out []*node[K, V]) {
	var free []*entry[K, V]
	for _, n := range out {
		if e := r.evict(n.entry); e != nil {
			free = append(free, e)
		}
	}
	r.later(free...)
}

// evict takes e, which is doomed or has expired, out of the table, unless another call has. It
// returns e if its value is to be closed then.
//
// If a Refresh is making the next value, that becomes the key's creation: so no caller begins a second one.
func (r *root[K, V]) evict(e *entry[K, V]) (free *entry[K, V]) {
	if n := e.state.Load().making(); n != nil && r.handOver(e, n) {
		r.current(n) // which the creation may have ended meanwhile
	} else if !r.vacate(e) {
		return nil
	}
	s := r.uncount(e)
	reason := ReasonEvicted
	switch {
	case e.mark.isExpired(): // uncount has counted it
	case e.mark.is(idle):
		reason = ReasonIdle
		r.accounting.idled.Add(1)
	default:
		r.accounting.evicted.Add(1)
	}
	if n := s.making(); n != nil {
		r.stopRenewing(n)
	}
	return r.release(e, s, reason)
}

// handOver puts n, which a Refresh is making to replace e, in the place of e.
func (r *root[K, V]) handOver(e, n *entry[K, V]) bool {
	if !r.entries.CompareAndSwap(r.at(e.key), e, n) {
		return false
	}
	if s := n.state.Load(); s.creating() { // or whoever has ended it has landed it
		r.land(s.flight)
	}
	return true
}

// enlist gives e, which has a value and is in the table, its place in the order.
func (r *root[K, V]) enlist(e *entry[K, V]) {
	if s := e.state.Load(); s != nil && s.node != nil {
		r.order.add(r, s.node)
	}
}
