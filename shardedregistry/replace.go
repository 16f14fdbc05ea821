package shardedregistry

// What follows is the short way of who replaces the value of a key that is present,
// where the root is light and no snapshot is being taken.

// replaceable returns the root, the cell of key and its live record, if
// the short way leads to it, or otherwise no record.
func (r *core[K]) replaceable(key K) (rt *root[K], c *cell[K], old *record) {
	if rt = r.root.Load(); rt == nil {
		return r.install(), nil, nil
	}
	if !rt.light || rt.snapshotting() {
		return rt, nil, nil
	}
	if c = rt.cells.Find(&rt.keys, key); c == nil {
		return rt, nil, nil
	}
	old = c.rec.Load()
	if old.word&(datedBit|deadBit) != 0 {
		old = rt.live(old)
	}
	return rt, c, old
}

// replaceable is the same for a Ref.
func (h *hold[K]) replaceable() (rt *root[K], c *cell[K], old *record) {
	rt = h.target.root
	if h.bad != nil || !rt.light || rt.snapshotting() {
		return rt, nil, nil
	}
	c, old = h.target.recall()
	return rt, c, old
}

// store stores value in place of old, which c held, and returns its version, or
// false if another operation has changed the key.
func store[K comparable, V any](rt *root[K], c *cell[K], old *record, value V) (Version, bool) {
	next := &boxed[record, V]{record{word: old.changed()}, value}
	if !rt.replace(c, old, &next.head) {
		return 0, false
	}
	return next.head.version(), true
}

// replace stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. What follows is what changed does for
// such records.
func (rt *root[K]) replace(c *cell[K], old, next *record) bool {
	if !c.rec.CompareAndSwap(old, next) {
		return false
	}
	if first, s := rt.detectors.Load(), rt.subscribers.Load(); first != nil || s != nil {
		rt.replaced(c, first, s)
	}
	return true
}

// replaced tells those of a record that was stored so.
func (rt *root[K]) replaced(c *cell[K], first *reentryDetector[K], s *subscribers[K]) {
	k := rt.rehashed(c.key)
	detect(first, k)
	if s != nil {
		rt.notify(s, k)
	}
}
