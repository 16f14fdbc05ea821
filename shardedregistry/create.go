package shardedregistry

// Create stores value for key if key is absent, and returns its version. It
// never overwrites: if key is present, the error is an [*ExistsError]. An
// invalid key gives [ErrInvalidKey]. If key is absent, Config.Check and unique
// indexes may reject the value.
//
// Create is wait-free if it finds key present, and otherwise blocking on the
// mutex of a hash bucket. It takes effect when the table stores the new entry,
// or, if key is present, when its record is read, or, if a unique value is
// taken, when the record that has it is read.
func (r *Registry[K, V]) Create(key K, value V) (Version, error) {
	p, err := r.locate(key)
	if err != nil {
		return 0, err
	}
	return p.insert(value).result()
}

// insertion is how a Create has ended: with a version, or, if the key was present,
// with an error of ours, or with one that may be anybody's.
type insertion struct {
	version Version
	exists  *ExistsError
	err     error
}

// result returns what Create returns.
func (i insertion) result() (Version, error) {
	if i.exists != nil {
		return 0, i.exists
	}
	return i.version, i.err
}

// insert runs Create.
func (p *place[K, V]) insert(value V) insertion {
	// LP(Create), present: the record is read, here or by create.
	c, rec := p.loadLive()
	if rec == nil {
		// LP(Create): the table stores the new cell, or the record of a rival is read.
		var created bool
		var err error
		if c, rec, created, err = p.create(value); err != nil {
			return insertion{err: err}
		}
		if created {
			return insertion{version: rec.version()}
		}
	}
	stored := c.key
	if beside := c.side.Load(); beside != nil && beside.spelled != nil {
		stored = *beside.spelled
	}
	return insertion{exists: &ExistsError{Given: p.shown(p.given), Stored: p.shown(stored), Version: rec.version()}}
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
		o.date(present)
		return c, present, false, nil
	}
	o.changed(k, c, nil, rec)
	o.check(k, rec)
	return c, rec, true, nil
}
