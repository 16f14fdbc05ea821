package oncecache

// Delete removes k, and returns the value that it had, if any. If a value is
// being created for k, the cache forgets that creation: those who take part in
// it get its result, which is not kept, and the next caller creates anew
// without waiting for it. With a Config.Close function, what Delete returns is
// closed at once, unless a lease holds it.
//
// Delete is wait-free if k is absent, and otherwise blocking on the mutex of
// one bucket. It takes effect when the entry is removed, or not found.
func (c *Cache[K, V]) Delete(k K) (old V, deleted bool) {
	r := c.shared()
	e := r.entries.LoadAndDelete(r.at(k)) // LP(Delete)
	if e == nil {
		return old, false
	}
	old, deleted = c.removed(r, e)
	r.retire(e)
	return old, deleted
}

// removed forgets the creation of e, if there is one, after Delete has taken e
// out of the table. Otherwise it returns the value of e.
func (c *Cache[K, V]) removed(r *root[K, V], e *entry[K, V]) (old V, ok bool) {
	p, left := e.forget()
	if left {
		r.books.finish(oneCreating)
		c.hide(r, &p.flight)
		return old, false
	}
	return e.valueAfter(p)
}

// hide lets Close find f, which is in no table, if Close could call it off.
func (c *Cache[K, V]) hide(r *root[K, V], f *flight) {
	if f.cancel == nil {
		return
	}
	r.books.hide(f)
	if c.root.Load() != r {
		f.ground() // Close may have looked before
	}
}

// CompareAndDelete removes k from c if its value is old, and reports whether
// it did. With it, many users of one broken value remove it once, and none of
// them removes its replacement. It panics, as == does, if V is an interface
// type and the values cannot be compared.
//
// CompareAndDelete is wait-free if k has another value or none, and otherwise
// blocking on the mutex of one bucket. It takes effect when the entry is
// removed, or else as [Cache.Get] does.
func CompareAndDelete[K, V comparable](c *Cache[K, V], k K, old V) bool {
	r := c.shared()
	for {
		e := r.find(k) // LP(CompareAndDelete): absent, another value, or being created
		if e == nil {
			return false
		}
		if v, ok := e.get(); !ok || v != old {
			return false
		}
		if r.remove(e) { // LP(CompareAndDelete): removed
			r.retire(e)
			return true
		}
		// Another caller replaced or removed the entry; an equal value may
		// have come in its place.
	}
}
