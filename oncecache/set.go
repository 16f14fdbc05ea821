package oncecache

import (
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// Set makes v the value of k, and returns the value that it replaced, if there was one. If a value is being
// created for k, all callers of that creation get v, and the context of the create function is cancelled.
//
// Set stores nothing for a key that holds a NaN, or if the cache is closed, or if v weighs more than MaxWeight:
// then k has no value afterwards. With a Config.Close function, the cache closes v in the end, at once if it is not
// stored, and the value that Set returns at once, unless a lease holds it. With Close or OnRemove, a v that is
// already the key's stays, with its weight and leases; its time to live begins anew, and it counts as used. Neither
// set a removed value again nor return it from create.
//
// Set is blocking on the mutex of one bucket, and for Config.Close where it calls that. It takes
// effect when the new entry takes the place of the old one, or when v is found there.
func (c *Cache[K, V]) Set(k K, v V) (old V, replaced bool) {
	r := c.shared()
	refused := r.refuses(k)
	if refused && !r.owns {
		return old, false
	}
	n := &entry[K, V]{key: k, value: v}
	var l limits
	if !refused {
		l = r.valueLimits(n) // first, as it may panic
		if l.weight == tooHeavy && r.owns {
			r.expiry(n, &l) // for the very value, which stays
		}
	}
	if r.owns && (r.accounting.begin(onePending) || refused) {
		r.dispose(r.unfit(k, v, nil))
		return old, false
	}
	heavy := l.weight == tooHeavy
	if !heavy {
		r.ready(n, l)
	} else if r.owns {
		n.state.Store(looseState[K, V](0, nil))
	}
	at := r.at(k)
	e, same := r.place(at, n, l)
	if same {
		return e.value, true
	}
	var left *state[K, V]
	if e != nil {
		reason := ReasonReplaced
		if r.owns && e.mark.is(doomed) && r.same(e.value, v) {
			reason = passedOn // it was leaving, but nobody could see that
		}
		had := r.overtake(e, n)
		left = r.uncount(e) // before n comes, which would make another one go
		r.endRefresh(left, n)
		if had && !e.mark.isExpired() {
			old, replaced = e.value, true
		}
		defer r.letGo(e, left, reason) // though the Close function of n may end the goroutine
	}
	switch {
	case !heavy:
		c.recheck(r, at, n)
	case r.owns:
		r.dispose(n)
	}
	return old, replaced
}

// refuses reports whether nothing can be stored for k. It panics if k cannot be compared.
func (r *root[K, V]) refuses(k K) bool {
	if !r.keys.Findable(k) {
		r.hash(k, 0)
		return true
	}
	return r.closed()
}

// ready makes n, which has a value and which others have not seen, an entry that is ready.
func (r *root[K, V]) ready(n *entry[K, V], l limits) {
	if r.owns || r.bounded {
		atomics.InitPointer(&n.state, r.readyState(n, l, 0, nil))
	}
	if !r.bounded {
		n.mark.bits.Store(usedForBoth)
	}
}

// place puts n in the place of the entry of its key, and returns that entry, or nil. If that has the
// very value of n, which is to be closed once, place leaves it and returns it with same, also if it is
// doomed though it is leased. An entry that is too heavy goes to no place, but what is there leaves.
func (r *root[K, V]) place(at table.Hashed[K], n *entry[K, V], l limits) (e *entry[K, V], same bool) {
	heavy := l.weight == tooHeavy
	if !r.owns && !heavy {
		return r.entries.Swap(at, n), false // LP(Set)
	}
	for {
		e := r.entries.Load(at) // LP(Set): too heavy, and nothing was there
		if e.has() && r.owns && r.same(e.value, n.value) {
			// Loaded before e can expire at once, which takes it off.
			made := e.state.Load().making()
			if r.prolongs(e, l) || e.mark.is(doomed) && e.state.Load().node.leased() { // LP(Set): the very value
				r.use(e)
				r.accounting.finish(onePending)
				r.endRefreshOf(e, made)
				return e, true
			}
		}
		switch {
		case heavy && e == nil:
			return nil, false
		case heavy && r.vacate(e): // LP(Set): too heavy
			return e, false
		case heavy: // another call has replaced or removed it
		case r.put(at, e, n): // LP(Set): replaced, or nothing was there
			return e, false
		}
	}
}

// put puts n in the place of e, which may be nil, in a cache that owns its values.
func (r *root[K, V]) put(at table.Hashed[K], e, n *entry[K, V]) bool {
	claim, ok := r.claimFor(e)
	if !ok {
		r.current(e) // takes it out of the table
		return false
	}
	if s := n.state.Load(); claim != nil {
		s.users.claim = claim
	}
	if e != nil {
		ok = r.entries.CompareAndSwap(at, e, n)
	} else {
		_, loaded := r.entries.LoadOrStore(at, n)
		ok = !loaded
	}
	if !ok {
		r.unclaim(claim, at.Key)
	} else if claim != nil && e != nil {
		claim.free.Wake() // for calls that wait until they can create
	}
	return ok
}

// prolongs makes the value of e, which is set again, one that is new and has these limits. It
// fails if the value has expired before.
func (r *root[K, V]) prolongs(e *entry[K, V], l limits) bool {
	return !r.bounded || r.order.prolong(r, e.state.Load().node, l)
}

// endRefreshOf ends n, which is to replace e, in the value of e. N may be nil.
func (r *root[K, V]) endRefreshOf(e, n *entry[K, V]) {
	if n != nil && !r.overtake(n, e) {
		r.detach(e, n)
		r.vacate(n) // if e has expired, and n has come in its place
	}
}

// recheck gives n, which its caller has put into the table, its place in the order. If the cache
// was closed since r was loaded, it takes n out again: Close changes the root and then empties the
// table, so one of them sees the other.
func (c *Cache[K, V]) recheck(r *root[K, V], at table.Hashed[K], n *entry[K, V]) {
	if c.root.Load() != r && r.vacate(n) {
		r.retire(n, ReasonClosed)
		return
	}
	r.enlist(n)
}

// SetIfAbsent makes v the value of k if k has none and none is being created, and reports whether it did. Actual
// is the value that k has then, or the zero value if it is being created. SetIfAbsent stores nothing where Set
// would not. A value that it does not store remains its caller's to close.
//
// SetIfAbsent is wait-free if k is present, and otherwise blocking on the mutex of one bucket. It takes effect
// when the entry is inserted or found.
func (c *Cache[K, V]) SetIfAbsent(k K, v V) (actual V, stored bool) {
	r := c.shared()
	at := r.at(k)
	if e := r.entries.Load(at); e != nil { // LP(SetIfAbsent): found, or closed
		if e.has() {
			return e.value, false
		}
		if e.state.Load().creating() {
			return actual, false
		}
	}
	if r.refuses(k) {
		return actual, false
	}
	n := &entry[K, V]{key: k, value: v}
	l := r.valueLimits(n)
	if l.weight == tooHeavy {
		return actual, false // LP(SetIfAbsent): too heavy
	}
	if r.owns && r.accounting.begin(onePending) {
		r.accounting.finish(onePending)
		return actual, false
	}
	r.ready(n, l)
	for {
		e := r.entries.Load(at) // LP(SetIfAbsent): found after all
		if e != nil {
			creating := e.state.Load().creating() // first: afterwards, what was being created may be there
			if creating || e.has() {
				if !creating {
					actual = e.value
				}
				if r.owns {
					r.accounting.finish(onePending)
				}
				return actual, false
			}
			if !e.state.Load().closing() {
				r.giveWay(e) // a kept error, or a value that is about to leave, is no value
				continue
			}
		}
		if r.put(at, e, n) { // LP(SetIfAbsent): inserted
			if e != nil {
				r.uncount(e)
			}
			c.recheck(r, at, n)
			return v, true
		}
	}
}

// giveWay takes e, which has no value, out of the table.
func (r *root[K, V]) giveWay(e *entry[K, V]) {
	if r.current(e) != nil {
		r.drop(e)
	}
}

// Delete removes k, and returns the value that it had, if any. If a value is being created for k,
// the callers of that creation get its result, which is not kept; the next caller starts another
// creation without waiting for it. With a Config.Close function, the value that Delete returns is
// closed at once, unless a lease holds it.
//
// Delete is wait-free if k is absent, and otherwise blocking on the mutex of one bucket, and for Config.Close where it
// calls that. It takes effect when the entry is removed, or not found.
func (c *Cache[K, V]) Delete(k K) (old V, deleted bool) {
	r := c.shared()
	e := r.take(r.at(k))
	if e == nil {
		return old, false
	}
	had := r.forget(e)
	s := r.uncount(e)
	r.endRefresh(s, nil)
	if had && !e.mark.isExpired() {
		old, deleted = e.value, true
	}
	r.letGo(e, s, ReasonDeleted)
	return old, deleted
}

// take takes the entry of k out of the table, and returns it, or nil.
func (r *root[K, V]) take(at table.Hashed[K]) *entry[K, V] {
	if !r.config.CloseBeforeCreate {
		return r.entries.LoadAndDelete(at) // LP(Delete)
	}
	for {
		e := r.entries.Load(at) // LP(Delete): absent
		if e == nil || e.state.Load().closing() {
			return nil
		}
		if r.vacate(e) { // LP(Delete)
			return e
		}
	}
}

// vacate takes e out of the table, and reports whether it was there. With CloseBeforeCreate, an
// entry that is closing takes its place as long as something is left of the key.
func (r *root[K, V]) vacate(e *entry[K, V]) bool {
	at, claim := r.at(e.key), e.state.Load().claim()
	if claim.isGone() {
		return r.entries.CompareAndDelete(at, e)
	}
	c := &entry[K, V]{key: e.key}
	c.state.Store(&state[K, V]{end: &ending[K, V]{claim: claim}})
	r.accounting.begin(oneCreating)
	if !r.entries.CompareAndSwap(at, e, c) {
		r.accounting.finish(oneCreating)
		return false
	}
	if claim.isGone() { // the last of the key may have looked before
		r.drop(c)
	}
	return true
}

// CompareAndDelete removes k from c if its value is old, and reports whether it did: so several users of one
// broken value remove it once, and its replacement stays. It panics, as == does, if V is an interface type and
// the values cannot be compared.
//
// CompareAndDelete is wait-free if k has another value or none, and otherwise blocking on the mutex of one
// bucket. It takes effect when the entry is removed, or else as [Cache.Get] does.
func CompareAndDelete[K, V comparable](c *Cache[K, V], k K, old V) bool {
	r := c.shared()
	for at := r.at(k); ; {
		e := r.entries.Load(at) // LP(CompareAndDelete): absent, another value, or being created
		if !e.has() || e.value != old {
			return false
		}
		if r.vacate(e) { // LP(CompareAndDelete): removed
			s := r.uncount(e)
			had := !e.mark.isExpired()
			r.endRefresh(s, nil)
			r.letGo(e, s, ReasonDeleted)
			return had
		}
		// Another caller replaced or removed the entry; an equal value may have come in its place.
	}
}

// Clear deletes every key, as Delete does, and returns how many values it has removed. Keys that
// are added meanwhile may stay. With a Config.Close function, values are closed on goroutines of
// the cache: Clear does not wait for that.
//
// Clear is blocking on the mutex of one bucket at a time. It takes effect for each key when the entry is removed.
func (c *Cache[K, V]) Clear() (removed int) {
	r := c.shared()
	var free []*entry[K, V]
	for found := range r.entries.All() {
		e := r.take(r.at(found.key)) // LP(Clear): also what has replaced the entry meanwhile
		if e == nil {
			continue
		}
		had := r.forget(e)
		s := r.uncount(e)
		r.endRefresh(s, nil)
		if had && !e.mark.isExpired() {
			removed++
		}
		free = append(free, r.release(e, s, ReasonDeleted))
	}
	r.later(free...)
	return removed
}
