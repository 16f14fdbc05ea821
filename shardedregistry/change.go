package shardedregistry

// change is what one call of Update, Put or Upsert knows by the attempt that is in
// progress, or was the last. It belongs to its goroutine. The place is not in it:
// what is stored goes to the heap, and so would all that is beside it.
type change[K comparable] struct {
	create bool // whether to create the key if it is absent
	failed int  // attempts that have failed before

	key    hkey[K] // as it is stored; not set if the key was absent
	cell   *cell[K]
	old    *record // what the key holds; nil if it was absent
	taking bool    // asked before old was read, so that little is between that and storing
	next   *record // what was drafted to be stored, by this attempt or the one before, or nil
}

// change repeats attempts until one is done. Every repetition but those that
// ErrTooManyRetries reports is due to another operation that has changed the same
// key. Fn drafts next, to be stored in place of old, or returns the user's error.
// Afterwards a.next is what was stored, in a.cell.
func (p *place[K]) change(a *change[K], fn func() error) error {
	return p.root.persist(p.key, a.failed, func() (bool, error) { return p.attempt(a, fn) })
}

// dated reports whether what is drafted must be dated. A creation asks when the user's
// function has run.
func (a *change[K]) dated(o *root[K]) bool { return a.taking || a.old == nil && o.taking() }

// attempt runs fn for what the key holds now, and stores what that has drafted if
// the key still holds it, or is still absent. It reports whether the change is
// done; otherwise another operation has changed the key.
func (p *place[K]) attempt(a *change[K], fn func() error) (done bool, err error) {
	o := p.root
	a.taking = o.taking()
	a.cell, a.old = p.loadLive()
	if a.old == nil {
		return p.attemptCreate(a, fn)
	}
	a.key = a.cell.named(p.key.Hash)
	// LP(Update), an error of fn: the record was read.
	// LP(Upsert), an error of fn: likewise.
	if err := fn(); err != nil {
		return true, err
	}
	o.check(a.key, a.old)
	if o.simple(a.next) {
		a.next.mark = a.old.changed()
	} else if err := o.prepare(a.key, a.next, a.old, a.old.changed()); err != nil {
		return true, err
	}
	// LP(Update): the new record is stored, or that of a rival is read.
	// LP(Put), present: likewise.
	// LP(Upsert), present: likewise.
	stored, err := p.swap(a.key, a.cell, a.old, a.next)
	if stored {
		o.changed(a.key, a.cell, a.old, a.next)
		o.check(a.key, a.next)
	}
	return stored || err != nil, err
}

// attemptCreate is attempt for a key that was absent.
func (p *place[K]) attemptCreate(a *change[K], fn func() error) (done bool, err error) {
	if !a.create {
		// LP(Update), absent: the table or a dead record was read.
		return true, ErrNotFound
	}
	if err := fn(); err != nil {
		return true, err
	}
	// LP(Put), absent: the table stores the new cell, or the record of a rival is read.
	// LP(Upsert), absent: likewise.
	var created bool
	a.cell, _, created, err = p.create(a.next)
	return created || err != nil, err
}
