package shardedregistry

// simple reports whether rec, which was drafted for the first time, needs nothing of
// prepare but its mark. Those who update ask, to save a call.
func (o *root[K]) simple(rec *record) bool { return o.large == nil && rec.mark == 0 }

// prepare makes rec, which was drafted, one of k to store in place of old, or, if
// old is nil, as the first one of a cell. Where there are rules it runs the user's
// functions, so that nothing may be held; an error is theirs.
func (o *root[K]) prepare(k hkey[K], rec, old *record, m mark) error {
	o.link(rec, old, m)
	if o.rules == nil {
		return nil
	}
	terms, err := o.rules.terms(k.Key, rec, old.terms())
	*rec.termed() = terms
	return err
}

// swap stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. It takes effect when next is
// stored, or, if it returns an error, when the record of a rival was read. Who
// has stored calls changed.
func (p *place[K]) swap(k hkey[K], c *cell[K], old, next *record) (stored bool, err error) {
	o := p.root
	if o.rules == nil {
		return c.rec.CompareAndSwap(old, next), nil
	}
	return o.rules.swap(*p, k, c, old, next)
}

// enlist is publish under the rules.
func (p *place[K]) enlist(fresh *cell[K], rec *record) (c *cell[K], present *record, err error) {
	o := p.root
	if o.rules == nil {
		c, present = o.publish(p.key, fresh, rec)
		return c, present, nil
	}
	return o.rules.enlist(*p, fresh, rec)
}
