package shardedregistry

// snapshotting reports whether a snapshot is being taken. Everyone who changes a key
// asks, and stores a dated record if so.
func (rt *root[K]) snapshotting() bool { return !rt.clock.Load().idle() }

// follow lets rec, which begins a cell, follow the dead record of the cell that
// it replaces.
func (rt *root[K]) follow(rec, dead *record) {
	rt.date(dead)
	if d := rec.dated(); d != nil {
		d.prev.Store(dead)
	}
	if rt.transitions() {
		rt.history(rec).prev.Store(dead)
	}
}

// date returns the date of rec, which it sets if there is none. A plain record
// has date 0.
func (rt *root[K]) date(rec *record) uint64 {
	d := rec.dated()
	if d == nil {
		return 0
	}
	if t := d.date.Load(); t != 0 {
		return t
	}
	now := rt.clock.Load()
	if d.date.CompareAndSwap(0, now.time) {
		return now.time
	}
	return d.date.Load()
}

// at returns the newest of rec and what it replaced that is dated before cut, or
// nil. It finds nothing older if the clock has cut.
func (rt *root[K]) at(rec *record, cut uint64) *record {
	for rec != nil && rt.date(rec) >= cut {
		rec = rec.dated().prev.Load()
	}
	return rec
}

// settle dates rec, which is dated, and forgets what it replaced as far as no
// collector needs it. It reports whether there is something that one needs.
//
// Scans is read after the record was stored and when its date is known, so a
// cut that it does not list is made after rec has replaced all that is forgotten
// here.
func (rt *root[K]) settle(rec *record) (needed bool) {
	first := rec.dated()
	until, now := first.date.Load(), rt.clock.Load()
	if until == 0 {
		if until = now.time; !first.date.CompareAndSwap(0, until) {
			until, now = first.date.Load(), rt.clock.Load()
		}
	}
	for d := first; ; {
		old := d.prev.Load()
		if old == nil {
			break
		}
		older, since := old.dated(), rt.date(old)
		if now.need(since, until) {
			needed = true
			if older == nil {
				break
			}
			d, until = older, since
			continue
		}
		var next *record
		if older != nil {
			next = older.prev.Load()
		}
		d.prev.CompareAndSwap(old, next) // or somebody else has forgotten it
	}
	return needed
}
