package oncecache

import "github.com/latchfree/latchfree/internal/atomics"

// mark says whether an entry was used, and whether it is to go. In a cache with an order
// it is all that a hit writes. Only a call that has locked the order asks, so one at a
// time.
type mark struct {
	// used has a bit for the search for a victim and one for the sweep: whether the entry
	// was used since it last asked. A use stores both; each asker clears its own.
	//
	//	0, used ── probed ── CAS ──▶ doomed   by the evictor, if no lease holds the entry
	//	            └── CAS ──▶ used          by a caller that comes to hold it
	//
	// Doomed comes with idle, or without.
	used atomics.Uint32
}

const (
	usedForSieve = 1 << iota // since the hand has passed
	usedForIdle              // since the last sweep
	probed                   // whether leases hold the entry is being looked at
	doomed                   // the entry is being evicted, which is final
	idle                     // because nobody has used it, and not because others need its room
	usedForBoth  = usedForSieve | usedForIdle
)

// touch notes that the entry was used.
func (m *mark) touch() {
	if m.used.Load() != usedForBoth {
		m.used.Or(usedForBoth)
	}
}

// keep notes that the caller, which is counted in the leases, holds the entry. It fails
// if the entry is being evicted. A holder that is counted before probed is set is found
// by the evictor; a holder that is counted later finds probed, and clears it.
func (m *mark) keep() bool {
	for {
		switch now := m.used.Load(); {
		case now == usedForBoth:
			return true
		case now&doomed != 0:
			return false
		case m.used.CompareAndSwap(now, usedForBoth):
			return true
		}
	}
}

// keepUnused is keep for one whose hold is no use.
func (m *mark) keepUnused() bool {
	for {
		switch now := m.used.Load(); {
		case now&doomed != 0:
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

// reason returns why a doomed entry goes.
func (m *mark) reason() reason {
	if m.used.Load()&idle != 0 {
		return whyIdle
	}
	return whyEvicted
}

// isDoomed reports whether the entry is being evicted.
func (m *mark) isDoomed() bool { return m.used.Load()&doomed != 0 }
