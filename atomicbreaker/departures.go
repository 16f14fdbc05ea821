package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// A group stores no healthy keys, so a call admitted for an absent key has no
// cell whose generation could void its result. It has an era instead.
//
// A new era begins whenever a cell that has changed its mode, or was reset,
// leaves the table: after the cell is dead and before it is unlinked. The eras
// are a list. A permit for an absent key keeps the one in which it was given;
// its result is late if a later era was begun by the same key, or if the
// key's cell, if there is one now, has changed its mode. DESIGN.md has the
// proof.
//
// The list is reachable from the group only in its last keptEras, and each
// older era points to itself, so that a permit that is never reported keeps
// one era alive and not all that followed.

// keptEras is how many eras a permit for an absent key stays good for. It
// costs a group 48 bytes per era, and a call would have to last while thousands
// of keys recover for its failure to be dropped.
const keptEras = 1 << 13

// An era is the time from one departure to the next.
type era struct {
	// From nil to the next era, by CAS of whoever begins that; then, once, to
	// the era itself by whoever drops it.
	next atomics.Pointer[era]

	// From zero to the era's place in the list, by all who help to move the
	// tail to it: they agree.
	number atomics.Uint64

	hash uint64   // of the key that departed
	home *absence // the book's, for permits that have nothing else
}

// eras is the list of one book.
type eras struct {
	now    atomics.Pointer[era] // the last, or on its way there; only moves forward
	oldest atomics.Pointer[era] // the first that is kept; only moves forward
}

// init begins the first era, before the list is shared.
func (l *eras) init(home *absence) {
	first := &era{home: home}
	first.number.Store(1)
	l.now.Store(first)
	l.oldest.Store(first)
}

// begin makes e the last era, once, however many callers try. When it returns,
// e has been l.now. The algorithm is Michael and Scott's queue, with one node
// that several enqueue together.
//
// e cannot be linked twice. A caller reads the last era first, as t, and the
// number of e second. If t is e or follows it, e has its number by then, since
// the tail moves to e only after that, and the caller returns. If e is linked
// anywhere behind t, t.next is not nil and the CAS fails.
//
// A caller goes round again only if another era was linked or the tail moved.
func (l *eras) begin(e *era) {
	for {
		t := l.now.Load()
		if n := e.number.Load(); n != 0 && n <= t.number.Load() {
			return
		}
		t.next.CompareAndSwap(nil, e)
		next := t.next.Load()
		if next == t {
			continue // dropped: the tail is far ahead
		}
		next.number.Store(t.number.Load() + 1)
		if l.now.CompareAndSwap(t, next) {
			l.drop(next.number.Load())
		}
	}
}

// drop cuts off the eras that are keptEras older than the newest.
func (l *eras) drop(newest uint64) {
	for {
		e := l.oldest.Load()
		if newest-e.number.Load() < keptEras || e.number.Load() >= newest {
			return
		}
		// e is far behind the tail, so its next was set long ago, and only the
		// winner of this CAS changes it again.
		if next := e.next.Load(); next != e && l.oldest.CompareAndSwap(e, next) {
			e.next.Store(e)
		}
	}
}

// departed reports whether a cell of the key with the given hash has begun an
// era after since, or may have, in an era that was dropped. It looks no
// further than the era that is last at its start.
//
// Two keys with the same 64-bit hash are taken for one. Then a failure that
// came with a departure of the other key is dropped.
func (l *eras) departed(since *era, hash uint64) bool {
	last := l.now.Load()
	for e := since; e != last; {
		next := e.next.Load()
		if next == e || next.hash == hash {
			return true
		}
		e = next
	}
	return false
}
