package shardedregistry

import "slices"

// snapshotClock says which snapshots are being taken. It is immutable: to change it,
// replace it.
//
// A cut is an instant between the changes that a snapshot contains and those
// that it does not. The clock counts cuts; cut c is the instant at which the
// clock became c. A change dated t happened before the cuts above t, and after
// the others.
type snapshotClock struct {
	time       uint64   // starts at 1: the date 0 means long ago
	collectors int      // snapshots that are being taken
	cuts       []uint64 // of those collectors that have made theirs
}

// now returns s, or what nil stands for.
func (sc *snapshotClock) now() snapshotClock {
	if sc == nil {
		return snapshotClock{time: 1}
	}
	return *sc
}

// idle reports whether no snapshot is being taken.
func (sc *snapshotClock) idle() bool { return sc == nil || sc.collectors == 0 }

// joined adds a collector.
func (sc snapshotClock) joined() snapshotClock {
	sc.collectors++
	return sc
}

// advanced makes a cut for a collector, in place of its old one (0: none).
func (sc snapshotClock) advanced(old uint64) snapshotClock {
	sc.time++
	sc.cuts = append(sc.without(old), sc.time)
	return sc
}

// left removes a collector and its cut.
func (sc snapshotClock) left(cut uint64) snapshotClock {
	sc.collectors--
	sc.cuts = sc.without(cut)
	return sc
}

func (sc snapshotClock) without(cut uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(sc.cuts), func(c uint64) bool { return c == cut })
}

// need reports whether a collector needs a record that was current from date since on
// and was replaced at date until.
func (sc snapshotClock) need(since, until uint64) bool {
	return slices.ContainsFunc(sc.cuts, func(c uint64) bool { return since < c && c <= until })
}

// updateClock replaces the clock by what change makes of it, and returns that. It is
// retried only when another collector has replaced the clock meanwhile.
func (rt *root[K, V]) updateClock(change func(snapshotClock) snapshotClock) snapshotClock {
	for {
		old := rt.clock.Load()
		next := change(old.now())
		if rt.clock.CompareAndSwap(old, &next) {
			return next
		}
	}
}

// snapshotting reports whether a snapshot is being taken. Each writer of a key asks,
// and stores a dated record if so.
func (rt *root[K, V]) snapshotting() bool { return !rt.clock.Load().idle() }

// follow lets rec, which begins a cell, follow the dead record of the cell that
// it replaces.
func (rt *root[K, V]) follow(rec, dead *record[K, V]) {
	rt.date(dead)
	if d := rec.dated(); d != nil {
		d.prev.Store(dead)
	}
}

// date returns the date of rec, which it sets if there is none. A plain record
// has date 0.
func (rt *root[K, V]) date(rec *record[K, V]) uint64 {
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
func (rt *root[K, V]) at(rec *record[K, V], cut uint64) *record[K, V] {
	for rec != nil && rt.date(rec) >= cut {
		rec = rec.dated().prev.Load()
	}
	return rec
}

// settle dates rec, which is dated, and forgets what it replaced as far as no
// collector needs it. It reports whether there is something that one needs.
//
// The clock is read after the record was stored and when its date is known, so a
// cut that it does not list is made after rec has replaced all that is forgotten
// here.
func (rt *root[K, V]) settle(rec *record[K, V]) (needed bool) {
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
		var next *record[K, V]
		if older != nil {
			next = older.prev.Load()
		}
		d.prev.CompareAndSwap(old, next) // or somebody else has forgotten it
	}
	return needed
}
