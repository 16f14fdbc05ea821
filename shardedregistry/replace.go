package shardedregistry

// What follows is the short way of who replaces the value of a key that is present,
// where the root is light and no snapshot is being taken.

// replaceable returns the root, the cell of key and its live record, if
// the short way leads to it, or otherwise no record.
func (r *core[K]) replaceable(key K) (o *root[K], c *cell[K], old *record) {
	if o = r.root.Load(); o == nil {
		return r.install(), nil, nil
	}
	if !o.light || o.taking() {
		return o, nil, nil
	}
	if c = o.cells.Find(&o.keys, key); c == nil {
		return o, nil, nil
	}
	old = c.rec.Load()
	if old.mark&(datedBit|deadBit) != 0 {
		old = o.live(old)
	}
	return o, c, old
}

// replaceable is the same for a Ref.
func (h *hold[K]) replaceable() (o *root[K], c *cell[K], old *record) {
	o = h.place.root
	if h.bad != nil || !o.light || o.taking() {
		return o, nil, nil
	}
	c, old = h.place.recall()
	return o, c, old
}

// store stores value in place of old, which c held, and returns its version, or
// false if another operation has changed the key.
func store[K comparable, V any](o *root[K], c *cell[K], old *record, value V) (Version, bool) {
	next := &boxed[record, V]{record{mark: old.changed()}, value}
	if !o.replace(c, old, &next.head) {
		return 0, false
	}
	return next.head.version(), true
}

// replace stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. What follows is what changed does for
// such records.
func (o *root[K]) replace(c *cell[K], old, next *record) bool {
	if !c.rec.CompareAndSwap(old, next) {
		return false
	}
	if first, a := o.suspects.Load(), o.audience.Load(); first != nil || a != nil {
		o.replaced(c, first, a)
	}
	return true
}

// replaced tells those of a record that was stored so.
func (o *root[K]) replaced(c *cell[K], first *suspect[K], a *audience[K]) {
	k := o.rehashed(c.key)
	catch(first, k)
	if a != nil {
		o.announce(a, k)
	}
}
