package oncecache

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// mark says whether an entry was used, and whether it is to go. It is all that a hit
// writes. Only a call that has locked the order asks, so one at a time; without an order
// nobody does.
//
// It lies right before its entry, so that a hit finds it beside the key: see marked.
type mark struct {
	// used has a bit for the search for a victim and one for the sweep: whether the entry
	// was used since it last asked. A use stores both; each asker clears its own.
	//
	//	0, used ── probed ── CAS ──▶ doomed   by the evictor, if no lease holds the entry
	//	            └── CAS ──▶ used          by a caller that comes to hold it
	//	any ──▶ expired                      by the timer of lifetimes, or from the beginning
	//	any ──▶ due ──▶ any                  by that timer, and by the caller that begins to renew
	//
	// Doomed comes with idle, or without. An error that is kept has noValue from the beginning.
	used atomics.Uint32

	_ uint32 // for sizeOfMark
}

// sizeOfMark is how far a mark lies before its entry, whatever K and V are: no alignment is
// larger.
const sizeOfMark = 8

var _ [sizeOfMark]byte = [unsafe.Sizeof(mark{})]byte{}

// mark returns the mark of e, which belongs to a cache with root.marked.
func (e *entry[K]) mark() *mark {
	// Safety: markedKind makes all entries of such a cache, each in a marked, where the mark
	// ends at the entry.
	return (*mark)(unsafe.Add(unsafe.Pointer(e), -sizeOfMark))
}

const (
	usedForSieve = 1 << iota // since the hand has passed
	usedForIdle              // since the last sweep
	probed                   // whether leases hold the entry is being looked at
	doomed                   // the entry is being evicted, which is final
	idle                     // because nobody has used it, and not because others need its room
	expired                  // the value must not be returned any more, which is final
	due                      // the next use of the value begins to renew it
	noValue                  // the entry has failed, and stays in the table
	usedForBoth  = usedForSieve | usedForIdle
)

// inUse reports whether the entry has a value that may be returned without a further look.
// The use that was noted had seen the value, or an error, which comes with noValue.
func (m *mark) inUse() bool { return m.used.Load() == usedForBoth }

// touch notes that the entry was used, whose outcome the caller has seen. At is its place, if
// there is one. It reports whether its value may be returned, which has not expired.
func (m *mark) touch(at *place) (live bool) {
	now := m.used.Load()
	if now&^noValue == usedForBoth {
		return true
	}
	if now&expired != 0 {
		return false
	}
	m.used.Or(usedForBoth)
	if now&due != 0 && m.used.And(^uint32(due))&due != 0 {
		at.life.of.renewDue(at)
	}
	return true
}

// keep notes that the caller, which is counted in the leases, holds the entry. It fails
// if the entry is being evicted, or has expired. A holder that is counted before probed is
// set is found by the evictor; a holder that is counted later finds probed, and clears it.
func (m *mark) keep(at *place) bool {
	for {
		switch now := m.used.Load(); {
		case now == usedForBoth:
			return true
		case now&(doomed|expired) != 0:
			return false
		case m.used.CompareAndSwap(now, usedForBoth):
			if now&due != 0 {
				at.life.of.renewDue(at)
			}
			return true
		}
	}
}

// keepUnused is keep for one whose hold is no use.
func (m *mark) keepUnused(*place) bool {
	for {
		switch now := m.used.Load(); {
		case now&(doomed|expired) != 0:
			return false
		case now&probed == 0 || m.used.CompareAndSwap(now, now&^probed):
			return true
		}
	}
}

// held notes that the entry was in use until now. The search for a victim has
// seen the lease.
func (m *mark) held() {
	if m.used.Load()&usedForIdle == 0 {
		m.used.Or(usedForIdle)
	}
}

// asked reports whether the entry was used since the last call for this bit.
func (m *mark) asked(bit uint32) bool {
	return m.used.Load()&bit != 0 && m.used.And(^bit)&bit != 0
}

// doom decides that the entry goes, unless leases hold it, or a bit of asks is set. Why is
// idle or zero.
func (m *mark) doom(leased func() bool, asks, why uint32) bool {
	m.used.Or(probed)
	if leased() {
		m.used.And(^uint32(probed))
		return false
	}
	for {
		now := m.used.Load()
		if now&asks != 0 || now&probed == 0 {
			m.used.And(^uint32(probed))
			return false
		}
		if m.used.CompareAndSwap(now, now|doomed|why) {
			return true
		}
	}
}

// isIdle reports whether a doomed entry goes because nobody has used it.
func (m *mark) isIdle() bool { return m.used.Load()&idle != 0 }

// isDoomed reports whether the entry is being evicted.
func (m *mark) isDoomed() bool { return m.used.Load()&doomed != 0 }

// isExpired reports whether the value of the entry has expired.
func (m *mark) isExpired() bool { return m.used.Load()&expired != 0 }

// isOver reports whether the entry is to leave the table, for one reason or the other.
func (m *mark) isOver() bool { return m.used.Load()&(doomed|expired) != 0 }
