package shardedregistry

// draft returns a record of k to store in place of old, or, if old is nil, as
// the first one of a cell. Where there are rules it runs the user's functions,
// so that nothing may be held; an error is theirs.
func (o *root[K, V]) draft(k hkey[K], taking bool, old *record[V], m mark, value V) (*record[V], error) {
	if o.rules == nil {
		return o.bare(taking, old, m, value), nil
	}
	terms, err := o.rules.terms(k.Key, value, old.terms())
	if err != nil {
		return nil, err
	}
	if o.transitions() {
		return draftLinkedTerms(taking, old, m, value, terms), nil
	}
	return draftTermed(taking, old, m, value, terms), nil
}

// bare returns a record of a key to store in place of old, or, if old is nil, as
// the first one of a cell. It is found by nothing: where there are rules, see
// draft.
func (o *root[K, V]) bare(taking bool, old *record[V], m mark, value V) *record[V] {
	if o.transitions() {
		return draftLinked(taking, old, m, value)
	}
	return bare(taking, old, m, value)
}

// swap stores next in place of old, which c held, and reports whether it did; if
// not, another operation has changed the key. It takes effect when next is
// stored, or, if it returns an error, when the record of a rival was read. Who
// has stored calls changed.
func (p *place[K, V]) swap(k hkey[K], c *cell[K, V], old, next *record[V]) (stored bool, err error) {
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
func (p *place[K, V]) enlist(fresh *cell[K, V], rec *record[V]) (c *cell[K, V], present *record[V], err error) {
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
