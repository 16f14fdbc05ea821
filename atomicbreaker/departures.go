package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// A group stores no healthy keys, so a call admitted for an absent key has no
// cell whose generation could void its result. It has a departure instead.
//
// Whenever a cell that has changed its mode, or was reset, leaves the table, its
// departure is appended to a list: after the cell is dead and before it is unlinked.
// A permit for an absent key keeps the departure that was the last when it was
// given. Its result is late if the same key has departed since, or if the key's
// cell, if there is one now, has changed its mode. DESIGN.md has the proof.
//
// The list is reachable from the group only in its last keptDepartures, and each
// older departure points to itself, so that a permit that is never reported keeps
// one departure alive and not all that followed.

// keptDepartures is how many departures a permit for an absent key stays good for. It
// costs a group 48 bytes per departure, and a call would have to last while thousands
// of keys recover for its failure to be dropped.
const keptDepartures = 1 << 13

// A departure says that a cell of a key with this hash has left the table. The
// first in a list is nobody's.
type departure struct {
	// From nil to the next departure, by CAS of a caller that appends that; then,
	// once, to the departure itself, by the caller that drops it.
	next atomics.Pointer[departure]

	// From zero to the departure's place in the list, by all callers that help to
	// move the tail to it: they agree.
	number atomics.Uint64

	hash uint64    // of the key that departed
	home *presence // of the group state, for permits that have nothing else
}

// departures is the list of one group state.
type departures struct {
	last   atomics.Pointer[departure] // the last, or on its way there; only moves forward
	oldest atomics.Pointer[departure] // the first that is kept; only moves forward
}

// init begins the list, before it is shared.
func (d *departures) init(home *presence) {
	first := &departure{home: home}
	first.number.Store(1)
	d.last.Store(first)
	d.oldest.Store(first)
}

// append makes e the last departure, once, however many callers try. When it returns,
// e has been d.last. The algorithm is Michael and Scott's queue, with one node
// that several enqueue together.
//
// e cannot be linked twice. A caller reads the last departure first, as t, and the
// number of e second. If t is e or follows it, e has its number by then, since
// the tail moves to e only after that, and the caller returns. If e is linked
// anywhere behind t, t.next is not nil and the CAS fails.
//
// A caller retries only if another departure was linked or the tail moved.
func (d *departures) append(e *departure) {
	for {
		t := d.last.Load()
		if n := e.number.Load(); n != 0 && n <= t.number.Load() {
			return
		}
		next := t.next.Install(e)
		if next == t {
			continue // dropped: the tail is far ahead
		}
		next.number.Store(t.number.Load() + 1)
		if d.last.CompareAndSwap(t, next) {
			d.drop(next.number.Load())
		}
	}
}

// drop cuts off the departures that are keptDepartures older than the newest.
func (d *departures) drop(newest uint64) {
	for {
		e := d.oldest.Load()
		if newest-e.number.Load() < keptDepartures || e.number.Load() >= newest {
			return
		}
		// e is far behind the tail, so its next was set long ago, and only the
		// winner of this CAS changes it again.
		if next := e.next.Load(); next != e && d.oldest.CompareAndSwap(e, next) {
			e.next.Store(e)
		}
	}
}

// departed reports whether a cell of the key with the given hash has departed
// after since, or may have, in a departure that was dropped. It looks no
// further than the departure that is last at its start.
//
// Two keys with the same 64-bit hash are taken for one. Then a failure that
// came with a departure of the other key is dropped.
func (d *departures) departed(since *departure, hash uint64) bool {
	last := d.last.Load()
	for e := since; e != last; {
		next := e.next.Load()
		if next == e || next.hash == hash {
			return true
		}
		e = next
	}
	return false
}
