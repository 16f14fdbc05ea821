package shardedregistry

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// dated is a record with its date and what it replaced. It is what everyone
// stores who has seen that a snapshot is being taken.
//
// Its change takes effect when the clock is read for its date, after it was
// stored. Whoever finds a dated record dates it before anything else, and in
// particular before storing another, so the dates along prev never increase
// and nobody sees a change that has not happened.
type dated[V any] struct {
	record[V]

	// date is 0 until somebody sets it by CAS, to the clock. Everybody reads.
	date atomics.Uint64

	// prev is what the key held before, dead or alive, or nil if nobody needs
	// it. Set before publication; then it only moves on to older records, by
	// CAS.
	prev atomics.Pointer[record[V]]
}

// dated returns the dated of which r is a part, or nil if it is plain.
func (r *record[V]) dated() *dated[V] {
	if r.mark&datedBit == 0 {
		return nil
	}
	// Safety: newDated alone sets the bit, in records that are the first field of
	// a dated.
	return (*dated[V])(unsafe.Pointer(r))
}

// taking reports whether a snapshot is being taken. Everyone who changes a key
// asks, and stores a dated record if so.
func (o *root[K, V]) taking() bool { return !o.scans.Load().idle() }

// bare is root.bare without links.
func bare[V any](taking bool, old *record[V], m mark, value V) *record[V] {
	if taking {
		return newDated(old, m, value)
	}
	return &record[V]{m, value}
}

func newDated[V any](old *record[V], m mark, value V) *record[V] {
	d := &dated[V]{record: record[V]{m | datedBit, value}}
	d.prev.Store(old)
	return &d.record
}

// follow lets rec, which begins a cell, follow the dead record of the cell that
// it replaces.
func (o *root[K, V]) follow(rec, dead *record[V]) {
	o.date(dead)
	if d := rec.dated(); d != nil {
		d.prev.Store(dead)
	}
	if o.transitions() {
		o.links(rec).prev.Store(dead)
	}
}

// date returns the date of rec, which it sets if there is none. A plain record
// has date 0.
func (o *root[K, V]) date(rec *record[V]) uint64 {
	d := rec.dated()
	if d == nil {
		return 0
	}
	if t := d.date.Load(); t != 0 {
		return t
	}
	now := o.scans.Load()
	if d.date.CompareAndSwap(0, now.clock) {
		return now.clock
	}
	return d.date.Load()
}

// at returns the newest of rec and what it replaced that is dated before cut, or
// nil. It finds nothing older if cut is one of scans.
func (o *root[K, V]) at(rec *record[V], cut uint64) *record[V] {
	for rec != nil && o.date(rec) >= cut {
		rec = rec.dated().prev.Load()
	}
	return rec
}

// settle dates rec, which is dated, and forgets what it replaced as far as no
// taker needs it. It reports whether there is something that one needs.
//
// Scans is read after the record was stored and when its date is known, so a
// cut that it does not list is made after rec has replaced all that is forgotten
// here.
func (o *root[K, V]) settle(rec *record[V]) (needed bool) {
	first := rec.dated()
	until, now := first.date.Load(), o.scans.Load()
	if until == 0 {
		if until = now.clock; !first.date.CompareAndSwap(0, until) {
			until, now = first.date.Load(), o.scans.Load()
		}
	}
	for d := first; ; {
		old := d.prev.Load()
		if old == nil {
			break
		}
		older, since := old.dated(), o.date(old)
		if now.need(since, until) {
			needed = true
			if older == nil {
				break
			}
			d, until = older, since
			continue
		}
		var next *record[V]
		if older != nil {
			next = older.prev.Load()
		}
		d.prev.CompareAndSwap(old, next) // or somebody else has forgotten it
	}
	return needed
}
