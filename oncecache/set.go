package oncecache

import (
	"time"

	"github.com/latchfree/latchfree/internal/table"
)

// Set makes v the value of k, and returns the value that it replaced, if there
// was one. If a value is being created for k, all callers of that creation get v,
// and the context of the create function is cancelled.
//
// Set stores nothing for a key that holds a NaN, or if the cache is closed. With a
// Config.Close function, the cache closes v in the end, at once if v is not stored.
// The value that Set returns is closed at once, unless a lease holds it. If v is the
// very value that is there, it stays as it is: Set returns it, and closes nothing.
// Do not set a value again that was removed: it is closed, or will be when its
// leases are released. A v that weighs more than Config.MaxWeight is not stored either:
// the old value leaves as for any other, and k has none then.
//
// Set is blocking on the mutex of one bucket. It takes effect when the new
// entry takes the place of the old one, or when v is found there.
func (c *Cache[K, V]) Set(k K, v V) (old V, replaced bool) {
	r := c.shared()
	refused := r.refuses(k)
	if refused && r.close == nil {
		return old, false
	}
	e := c.set(r, newBoxed(r, k, v), refused)
	if e == nil {
		return old, false
	}
	return *valueOf[V](e), true
}

// refuses reports whether nothing can be stored for k. It panics if k cannot be
// compared.
func (r *root[K]) refuses(k K) bool { return !r.storable(k) || r.before != nil }

// set is Set of the value of n, which others have not seen. It returns the entry
// whose value Set returns, or nil.
func (c *core[K]) set(r *root[K], n *entry[K], refused bool) (old *entry[K]) {
	k, lims := n.key, limits{}
	if !refused {
		lims = r.limitsOf(n, false) // first, as it may panic
	}
	if r.close != nil && (r.own(k) || refused) {
		r.dispose(n)
		return nil
	}
	at := r.at(k)
	r.overtake(at)
	if lims.weight == tooHeavy {
		return r.sieve.setHeavy(r, n)
	}
	r.makeReady(n, lims)
	e := r.swap(at, n, lims.until)
	if e == n {
		return n
	}
	var left *phase[K]
	if e != nil {
		had := r.replaced(e, n)
		left = r.leave(e) // before n comes, which would make another one go
		if had && e.live(left) {
			old = e
		}
	}
	if r.close != nil && e != nil {
		defer r.finish(e, left, whyReplaced) // though the Close function of n may end the goroutine
	}
	c.recheck(r, k, n)
	return old
}

// swap puts n in the place of the entry of its key, and returns that entry, or nil. If
// that has the very value of n, which is to be closed once, it stays, and swap returns n.
func (r *root[K]) swap(at table.Hashed[K], n *entry[K], until time.Duration) *entry[K] {
	if r.close == nil {
		return r.entries.Swap(at, n) // LP(Set)
	}
	for {
		e := r.entries.Load(at)
		switch {
		case e == nil:
			if _, loaded := r.entries.LoadOrStore(at, n); !loaded { // LP(Set): nothing was there
				return nil
			}
		case r.hasValueOf(e, n) && r.prolongs(e, until): // LP(Set): the very value
			r.unown(n.key)
			return n
		default:
			if r.note(e); r.entries.CompareAndSwap(at, e, n) { // LP(Set): replaced
				return e
			}
		}
		// Another caller has put something there, or removed it.
	}
}

// makeReady makes n, which has a value and which others have not seen, an entry
// that is ready. Its value has these limits.
func (r *root[K]) makeReady(n *entry[K], l limits) {
	if p := r.readyPhase(n, l, 0); p != nil {
		n.state.Store(p)
	}
}

// replaced ends the creation of e, if there is one, in the value of n, which
// Set has put in its place. Otherwise it reports whether e has a value, which may have
// expired.
func (r *root[K]) replaced(e, n *entry[K]) (had bool) {
	p := e.joinable()
	if !p.creating() {
		return e.readyAfter(p)
	}
	r.backlog.note(e, p.flight)
	if !e.state.CompareAndSwap(p, newPhase(finalState[K]{to: n, was: p})) {
		return e.state.Load().ready()
	}
	r.accounting.finish(oneCreating)
	p.end()
	p.callOff(nil)
	return false
}

// recheck removes n, which its caller has put into the table, if the cache was
// closed since r was loaded, and otherwise puts it in the order. Close changes
// the root and then empties the table, so one of them sees the other.
func (c *core[K]) recheck(r *root[K], k K, n *entry[K]) {
	if c.root.Load() != r && r.entries.CompareAndDelete(r.at(k), n) {
		r.retire(n, whyClosed)
		return
	}
	r.settled(n)
}

// SetIfAbsent makes v the value of k if k has none and none is being created,
// and reports whether it did. It stores nothing for a key that holds a NaN, or
// or a value that weighs more than Config.MaxWeight, or if the cache is closed. A value
// that it does not store remains its caller's to
// close. If Close overtakes the call, the value may be stored only to be thrown
// away, also in the place of a creation that Close has ended.
//
// SetIfAbsent is wait-free if k is present, and otherwise blocking on the
// mutex of one bucket. It takes effect when the entry is inserted or found.
func (c *Cache[K, V]) SetIfAbsent(k K, v V) bool {
	r := c.shared()
	return r.vacant(k) && c.setIfAbsent(r, newBoxed(r, k, v))
}

// vacant reports whether SetIfAbsent may store a value for k.
func (r *root[K]) vacant(k K) bool {
	e := r.seek(k) // LP(SetIfAbsent): found, or closed
	return (e == nil || r.fails && (e.failed() || e.hasExpired())) && !r.refuses(k)
}

// setIfAbsent is the rest of SetIfAbsent, of the value of n, which others have not
// seen.
func (c *core[K]) setIfAbsent(r *root[K], n *entry[K]) bool {
	k, lims := n.key, r.limitsOf(n, false)
	if lims.weight == tooHeavy {
		return false // LP(SetIfAbsent): too heavy
	}
	if r.close != nil && r.own(k) {
		r.unown(k)
		return false
	}
	r.makeReady(n, lims)
	for {
		e, loaded := r.entries.LoadOrStore(r.at(k), n) // LP(SetIfAbsent): inserted, or found after all
		if !loaded {
			c.recheck(r, k, n)
			return true
		}
		if !e.failed() && !e.hasExpired() {
			if r.close != nil {
				r.unown(k)
			}
			return false
		}
		if r.current(e) != nil {
			r.expire(e) // a failure that is kept is no value
		}
	}
}
