package shardedregistry

// Peek returns a pointer to the value of key, or nil if key is absent. It copies
// nothing, so it is quicker than Get if the value has many words. All readers share
// the value: it must not be modified. It never changes either; an operation that
// changes key stores another.
//
// Peek is wait-free. It takes effect when the key's record is read, or, if key is
// absent, when the table is read or the key's last record was stored.
func (r *Registry[K, V]) Peek(key K) *V {
	rt := r.root.Load()
	if rt == nil {
		return nil
	}
	if !rt.open {
		return peek(rt, key)
	}
	// LP(Peek): the table is read, or the record.
	c, _ := rt.cells.Find(&rt.keys, key)
	if c == nil {
		return nil
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return nil
		}
	}
	return &rec.value
}

// peek is Peek where the key is not stored as it is given.
func peek[K comparable, V any](rt *root[K, V], key K) *V {
	if _, rec := rt.find(key); rec != nil {
		return &rec.value
	}
	return nil
}
