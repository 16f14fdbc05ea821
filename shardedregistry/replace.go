package shardedregistry

// What follows is the short way of who replaces the value of a key that is present,
// where the root is light and no snapshot is being taken.

// replaceable returns the root, the hash of key, its cell and its live record, if
// the short way leads to it, or otherwise no record.
func (r *core[K]) replaceable(key K) (o *root[K], hash uint64, c *cell[K], old *record) {
	if o = r.root.Load(); o == nil {
		return r.install(), hash, c, nil
	}
	if !o.light || o.taking() {
		return o, hash, c, nil
	}
	hash = o.keys.Hash(key)
	b := o.shard(hash).table.Load()
	if b == nil {
		return o, hash, c, nil
	}
	if c = b.Load(hkey[K]{Hash: hash, Key: key}); c == nil {
		return o, hash, c, nil
	}
	old = c.rec.Load()
	if old.mark&(datedBit|deadBit) != 0 {
		old = o.live(old)
	}
	return o, hash, c, old
}

// replaceable is the same for a Ref.
func (h *hold[K]) replaceable() (o *root[K], hash uint64, c *cell[K], old *record) {
	o, hash = h.place.root, h.place.key.Hash
	if h.bad != nil || !o.light || o.taking() {
		return o, hash, c, nil
	}
	c, old = h.place.recall()
	return o, hash, c, old
}

// store stores value in place of old, which c held, and returns its version, or
// false if another operation has changed the key.
func store[K comparable, V any](o *root[K], hash uint64, c *cell[K], old *record, value V) (Version, bool) {
	next := &boxed[record, V]{record{mark: old.changed()}, value}
	if !o.replace(hash, c, old, &next.head) {
		return 0, false
	}
	return next.head.version(), true
}

// replace stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. What follows is what changed does for
// such records.
func (o *root[K]) replace(hash uint64, c *cell[K], old, next *record) bool {
	if !c.rec.CompareAndSwap(old, next) {
		return false
	}
	if first := o.shard(hash).suspects.Load(); first != nil {
		catch(first, c.named(hash))
	}
	if a := o.audience.Load(); a != nil {
		o.announce(a, c.named(hash))
	}
	return true
}
