package oncecache

// Set makes v the value of k, and returns the value that it replaced, if there
// was one. If a value is being created for k, everyone who takes part in that
// creation gets v, and the context of the create function is cancelled.
//
// Set stores nothing for a key that holds a NaN, or if the cache is closed.
// With a Config.Close function, v is the cache's to close from now on, at once
// if it is not stored; and so is what Set returns, unless a lease holds it.
//
// Set is blocking on the mutex of one bucket. It takes effect when the new
// entry takes the place of the old one.
func (c *Cache[K, V]) Set(k K, v V) (old V, replaced bool) {
	r := c.shared()
	refused := !r.storable(k) || r.before != nil
	if r.close != nil && (r.books.begin(onePending) || refused) {
		r.dispose(k, v)
		return old, false
	}
	if refused {
		return old, false
	}
	n := r.newEntry(k, v)
	e := r.entries.Swap(r.at(k), n) // LP(Set)
	if e != nil {
		old, replaced = r.replaced(e, n)
		// Before n comes, which would make another one go; and even if
		// closing that calls runtime.Goexit.
		defer r.release(e, r.leave(e))
	}
	c.recheck(r, k, n)
	return old, replaced
}

// newEntry returns an entry that is ready.
func (r *root[K, V]) newEntry(k K, v V) *entry[K, V] {
	n := &entry[K, V]{key: k, value: v}
	if r.close != nil {
		n.state.Store(newLeased[K, V](r.stand(k, n)))
	} else if r.order != nil {
		n.state.Store(&phase[K, V]{mark: r.stand(k, n)})
	}
	return n
}

// replaced ends the creation of e, if there is one, in the value of n, which
// Set has put in its place. Otherwise it returns the value of e.
func (r *root[K, V]) replaced(e, n *entry[K, V]) (old V, ok bool) {
	p, left := e.supersede(n)
	if left {
		r.books.finish(oneCreating)
		p.end()
		p.callOff(nil)
		return old, false
	}
	return e.valueAfter(p)
}

// recheck removes n, which its caller has put into the table, if the cache was
// closed since r was loaded, and otherwise puts it in the order. Close changes
// the root and then empties the table, so one of them sees the other.
func (c *Cache[K, V]) recheck(r *root[K, V], k K, n *entry[K, V]) {
	if c.root.Load() != r && r.entries.CompareAndDelete(r.at(k), n) {
		r.retire(n)
		return
	}
	r.settled(n)
}

// SetIfAbsent makes v the value of k if k has none and none is being created,
// and reports whether it did. It stores nothing for a key that holds a NaN, or
// if the cache is closed. What it does not store is its caller's to close. If
// Close overtakes the call, the value may be stored only to be thrown away, also
// in the place of a creation that Close has ended.
//
// SetIfAbsent is wait-free if k is present, and otherwise blocking on the
// mutex of one bucket. It takes effect when the entry is inserted or found.
func (c *Cache[K, V]) SetIfAbsent(k K, v V) bool {
	r := c.shared()
	if e := r.find(k); e != nil && !(r.fails && e.failed()) || !r.storable(k) || r.before != nil { // LP(SetIfAbsent): found, or closed
		return false
	}
	if r.close != nil && r.books.begin(onePending) {
		r.books.finish(onePending)
		return false
	}
	n := r.newEntry(k, v)
	for {
		e, loaded := r.entries.LoadOrStore(r.at(k), n) // LP(SetIfAbsent): inserted, or found after all
		if !loaded {
			c.recheck(r, k, n)
			return true
		}
		if !e.failed() {
			if r.close != nil {
				r.books.finish(onePending)
			}
			return false
		}
		r.expire(e) // a failure that is kept is no value
	}
}
