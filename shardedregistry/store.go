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
func (p *place[K, V]) swap(c *cell[K, V], old, next *record[V]) (stored bool, err error) {
	o, k := p.root, p.key
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

// create publishes value as a new cell of the key unless that is present, in which
// case it returns false with the cell and the record that are. It takes effect when
// the table stores the new cell, or else when it reads the record. An error is
// that of the rules.
func (p *place[K, V]) create(value V) (c *cell[K, V], rec *record[V], created bool, err error) {
	o, k := p.root, p.key
	rec, err = o.draft(k, o.taking(), nil, 0, o.in(value))
	if err != nil {
		return nil, nil, false, err
	}
	fresh := &cell[K, V]{key: k.Key}
	if spelled := o.spelling(k, p.given); spelled != nil {
		fresh.side.Store(&side[K, V]{spelled: spelled})
	}
	fresh.rec.Store(rec)
	c, present, err := p.enlist(fresh, rec)
	if err != nil {
		return nil, nil, false, err
	}
	if c != fresh {
		p.key.Key = c.key
		o.date(present)
		return c, present, false, nil
	}
	o.changed(k, c, nil, rec)
	o.check(k, rec)
	return c, rec, true, nil
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
