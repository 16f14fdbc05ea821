package shardedregistry

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
	terms, others := next.terms(), old.terms()
	gates := o.rules.enter(terms, others)
	if rival := o.rival(terms, others); rival != nil {
		o.rules.leave(gates)
		if c.rec.Load() != old {
			return false, nil // and what the error would say depends on that
		}
		return false, p.taken(rival)
	}
	o.rules.pin(k, terms, others)
	stored = c.rec.CompareAndSwap(old, next)
	o.rules.leave(gates)
	if !stored {
		o.rules.drop(k, terms, others)
	}
	return stored, nil
}

// enlist is publish under the rules.
func (p *place[K]) enlist(fresh *cell[K], rec *record) (c *cell[K], present *record, err error) {
	o, k := p.root, p.key
	if o.rules == nil {
		c, present = o.publish(k, fresh, rec)
		return c, present, nil
	}
	terms := rec.terms()
	gates := o.rules.enter(terms, nil)
	for { // at most once for each term, which nobody gains meanwhile
		rival := o.rival(terms, nil)
		if rival == nil {
			break
		}
		c, present = o.loadLive(k)
		if present == nil && o.holder(rival.key, rival.term) == nil {
			continue // it may have lost the value while k was present
		}
		o.rules.leave(gates)
		if present == nil {
			err = p.taken(rival)
		}
		return c, present, err
	}
	o.rules.pin(k, terms, nil)
	c, present = o.publish(k, fresh, rec)
	o.rules.leave(gates)
	if c != fresh {
		o.rules.drop(k, terms, nil)
	}
	return c, present, nil
}
