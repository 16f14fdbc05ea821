package shardedregistry

// simple reports whether rec, which was drafted for the first time, needs nothing of
// prepare but its word. Those who update ask, to save a call.
func (rt *root[K]) simple(rec *record) bool { return rt.large == nil && rec.word == 0 }

// prepare makes rec, which was drafted, one of k to store in place of old, or, if
// old is nil, as the first one of a cell. Where there are constraints it runs the user's
// functions, so that nothing may be held; an error is theirs.
func (rt *root[K]) prepare(k hkey[K], rec, old *record, m word) error {
	rt.link(rec, old, m)
	if rt.constraints == nil {
		return nil
	}
	terms, err := rt.constraints.indexKeys(k.Key, rec, old.indexKeys())
	*rec.indexed() = terms
	return err
}

// swap stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. It takes effect when next is
// stored, or, if it returns an error, when the record of a rival was read. Who
// has stored calls changed.
func (t *target[K]) swap(k hkey[K], c *cell[K], old, next *record) (stored bool, err error) {
	rt := t.root
	if rt.constraints == nil {
		return c.rec.CompareAndSwap(old, next), nil
	}
	return rt.constraints.swap(*t, k, c, old, next)
}

// enlist is publish under the constraints.
func (t *target[K]) enlist(fresh *cell[K], rec *record) (c *cell[K], present *record, err error) {
	rt := t.root
	if rt.constraints == nil {
		c, present = rt.publish(t.key, fresh, rec)
		return c, present, nil
	}
	return rt.constraints.enlist(*t, fresh, rec)
}
