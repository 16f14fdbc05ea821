package oncecache

import "github.com/latchfree/latchfree/internal/table"

// Delete removes k, and returns the value that it had, if any. If a value is
// being created for k, the cache forgets that creation: its callers get its
// result, which is not kept, and the next caller creates anew without waiting for
// it. If its function has not begun, because it waits for an earlier value of the
// key, its callers begin anew with the next caller. With a Config.Close function,
// the value that Delete returns is closed at once, unless a lease holds it.
//
// Delete is wait-free if k is absent, and otherwise blocking on the mutex of
// one bucket. It takes effect when the entry is removed, or not found.
func (c *Cache[K, V]) Delete(k K) (old V, deleted bool) {
	r := c.shared()
	e, deleted := r.delete(r.at(k))
	if deleted {
		old = *valueOf[V](e)
	}
	return old, deleted
}

// delete is Delete. It returns the entry that it has removed, or nil.
func (r *root[K]) delete(k table.Hashed[K]) (e *entry[K], deleted bool) {
	r.overtake(k)
	if e = r.take(k); e == nil {
		return nil, false
	}
	deleted = r.removed(e)
	p := r.leave(e)
	deleted = deleted && e.live(p)
	r.finish(e, p, whyDeleted)
	return e, deleted
}

// Clear deletes every key, and returns how many values it has removed. It acts as
// Delete does for each key: callers of a creation get its result, which is not
// kept, and the next caller creates anew. It removes the keys that were there when
// it began, and some of the keys that come meanwhile. With a Config.Close function,
// values that no lease holds are closed on goroutines of the cache, several at a
// time: Clear does not wait for that.
//
// Clear is blocking on the mutex of one bucket at a time. It takes effect for
// each key when the entry is removed.
func (c *Cache[K, V]) Clear() (removed int) { return c.clear() }

func (c *core[K]) clear() (removed int) {
	r := c.root.Load()
	if r == nil {
		return 0
	}
	if renewals := r.renewals.Load(); renewals != nil {
		renewals.clear() // as overtake does for one key
	}
	var free []*entry[K]
	for found := range r.entries.All() {
		if r.note(found); !r.remove(found) { // LP(Clear)
			continue
		}
		had := r.removed(found)
		p := r.leave(found)
		if had && found.live(p) {
			removed++
		}
		if r.release(found, p, whyDeleted) {
			free = append(free, found)
		}
	}
	r.later(free)
	return removed
}

// take removes the entry of k, and returns it, or nil.
func (r *root[K]) take(k table.Hashed[K]) *entry[K] {
	if r.claims == nil && !r.renews {
		return r.entries.LoadAndDelete(k) // LP(Delete)
	}
	for { // noting a function that holds the key
		e := r.entries.Load(k) // LP(Delete): absent
		if e == nil {
			return nil
		}
		if r.note(e); r.remove(e) { // LP(Delete)
			return e
		}
		// Another caller has removed or replaced it.
	}
}

// note notes the creation of e, if there is one.
func (r *root[K]) note(e *entry[K]) {
	if p := e.joinable(); p.creating() {
		r.backlog.note(e, p.flight)
	}
}

// overtake is called before a step that is to be newer than a Refresh of k under way: the
// value of the Refresh will not be kept, and later callers neither wait for it nor join
// it.
func (r *root[K]) overtake(k table.Hashed[K]) {
	if renewals := r.renewals.Load(); renewals != nil {
		renewals.root.Load().delete(k)
	}
}

// removed forgets the creation of e, if there is one, after Delete has taken e
// out of the table. Otherwise it reports whether e has a value, which may have expired.
func (r *root[K]) removed(e *entry[K]) (had bool) {
	p, left := r.forget(e)
	if left {
		r.accounting.finish(oneCreating)
		return false
	}
	return e.readyAfter(p)
}

// forget moves the creation of e, if there is one, to an entry that only its callers
// find. Either forget or Close, of which one sees the other, calls it off if the cache is
// closed.
func (r *root[K]) forget(e *entry[K]) (p *phase[K], left bool) {
	if p = e.joinable(); !p.creating() {
		return p, false
	}
	r.backlog.note(e, p.flight)
	if p, left = e.forget(r.of); !left {
		return p, false
	}
	if tally(r.accounting.work.Load()).closed() {
		p.closeCache() // Close may have looked before
	}
	if x := p.ext; x != nil && x.turn.CompareAndSwap(waiting, sentBack) {
		p.callOff(nil)
	}
	return p, true
}

// forgotten ends a flight that Delete has moved to an entry which only its callers reach,
// and where only the creator and the timer write. It fails if the flight has not been
// moved, or has ended.
func (n *creation[K]) forgotten(moved *phase[K], end *result, who participants) bool {
	m := moved.final.to
	if m == nil || m.state.Load() != n.phase {
		return false
	}
	if end.err == nil {
		n.root.of.copyValue(m, n.entry)
	}
	end.limits = limits{}
	now := n.outcome(end, who, false)
	if !m.state.CompareAndSwap(n.phase, now) { // LP(GetOrCreate): a forgotten creation
		return false
	}
	if now != nil && now.leases != nil {
		n.root.close.lingerOn(n.root, m, now.leases)
	}
	return true
}

// CompareAndDelete removes k from c if its value is old, and reports whether
// it did. If several users of one broken value call it, the value is removed once, and
// its replacement stays. It panics, as == does, if V is an interface
// type and the values cannot be compared.
//
// CompareAndDelete is wait-free if k has another value or none, and otherwise
// blocking on the mutex of one bucket. It takes effect when the entry is
// removed, or else as [Cache.Get] does.
func CompareAndDelete[K, V comparable](c *Cache[K, V], k K, old V) bool {
	r := c.shared()
	for {
		e := r.seek(k) // LP(CompareAndDelete): absent, another value, or being created
		if e == nil {
			return false
		}
		if v, ok := get[V](e); !ok || v != old {
			return false
		}
		if r.remove(e) { // LP(CompareAndDelete): removed
			p := r.leave(e)
			had := e.live(p)
			r.finish(e, p, whyDeleted)
			return had
		}
		// Another caller replaced or removed the entry; an equal value may
		// have come in its place.
	}
}
