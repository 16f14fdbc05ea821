package shardedregistry

// change is what one call of Update, Put or Upsert knows by the attempt that is in
// progress, or was the last. It belongs to its goroutine. The place is not in it:
// what is stored goes to the heap, and so would all that is beside it.
type change[K comparable] struct {
	create bool // whether to create the key if it is absent
	failed int  // attempts that have failed before

	key          hkey[K] // as it is stored; not set if the key was absent
	cell         *cell[K]
	old          *record // what the key holds; nil if it was absent
	snapshotting bool    // asked before old was read, so that little is between that and storing
	next         *record // what was drafted to be stored, by this attempt or the one before, or nil
}

// change repeats attempts until one is done. Every repetition but those that
// ErrTooManyRetries reports is due to another operation that has changed the same
// key. Fn drafts next, to be stored in place of old, or returns the user's error.
// Afterwards a.next is what was stored, in a.cell.
func (t *target[K]) change(a *change[K], fn func() error) error {
	return t.root.persist(t.key, a.failed, func() (bool, error) { return t.attempt(a, fn) })
}

// dated reports whether what is drafted must be dated. A creation asks when the user's
// function has run.
func (a *change[K]) dated(rt *root[K]) bool {
	return a.snapshotting || a.old == nil && rt.snapshotting()
}

// attempt runs fn for what the key holds now, and stores what that has drafted if
// the key still holds it, or is still absent. It reports whether the change is
// done; otherwise another operation has changed the key.
func (t *target[K]) attempt(a *change[K], fn func() error) (done bool, err error) {
	rt := t.root
	a.snapshotting = rt.snapshotting()
	a.cell, a.old = t.loadLive()
	if a.old == nil {
		return t.attemptCreate(a, fn)
	}
	a.key = a.cell.named(t.key.Hash)
	// LP(Update), an error of fn: the record was read.
	// LP(Upsert), an error of fn: likewise.
	if err := fn(); err != nil {
		return true, err
	}
	rt.check(a.key, a.old)
	if rt.simple(a.next) {
		a.next.word = a.old.changed()
	} else if err := rt.prepare(a.key, a.next, a.old, a.old.changed()); err != nil {
		return true, err
	}
	// LP(Update): the new record is stored, or that of a rival is read.
	// LP(Put), present: likewise.
	// LP(Upsert), present: likewise.
	stored, err := t.swap(a.key, a.cell, a.old, a.next)
	if stored {
		rt.changed(a.key, a.cell, a.old, a.next)
		rt.check(a.key, a.next)
	}
	return stored || err != nil, err
}

// attemptCreate is attempt for a key that was absent.
func (t *target[K]) attemptCreate(a *change[K], fn func() error) (done bool, err error) {
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
	a.cell, _, created, err = t.create(a.next)
	return created || err != nil, err
}
