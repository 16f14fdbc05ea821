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
	//	any ──▶ expired                      by the timer of lifetimes, or from the beginning
	//	any ──▶ due ──▶ any                  by that timer, and by the caller that begins to renew
	//
	// Doomed comes with idle, or without.
	used atomics.Uint32

	// life is nil if the value does not expire, nil → non-nil once, under sieve.mu or before
	// the entry is shared. A use reads it that has found due, which came later.
	life *lifetime
}

const (
	usedForSieve = 1 << iota // since the hand has passed
	usedForIdle              // since the last sweep
	probed                   // whether leases hold the entry is being looked at
	doomed                   // the entry is being evicted, which is final
	idle                     // because nobody has used it, and not because others need its room
	expired                  // the value must not be returned any more, which is final
	due                      // the next use of the value begins to renew it
	usedForBoth  = usedForSieve | usedForIdle
)

// touch notes that the entry was used. It reports whether its value may be returned, which
// has not expired.
func (m *mark) touch() (live bool) {
	now := m.used.Load()
	return now == usedForBoth || m.touchFirst(now)
}

// touchFirst is touch where now is not that of an entry that has been used.
func (m *mark) touchFirst(now uint32) (live bool) {
	if now&expired != 0 {
		return false
	}
	m.used.Or(usedForBoth)
	if now&due != 0 && m.used.And(^uint32(due))&due != 0 {
		m.life.of.renewDue(m)
	}
	return true
}

// keep notes that the caller, which is counted in the leases, holds the entry. It fails
// if the entry is being evicted, or has expired. A holder that is counted before probed is
// set is found by the evictor; a holder that is counted later finds probed, and clears it.
func (m *mark) keep() bool {
	for {
		switch now := m.used.Load(); {
		case now == usedForBoth:
			return true
		case now&(doomed|expired) != 0:
			return false
		case m.used.CompareAndSwap(now, usedForBoth):
			if now&due != 0 {
				m.life.of.renewDue(m)
			}
			return true
		}
	}
}

// keepUnused is keep for one whose hold is no use.
func (m *mark) keepUnused() bool {
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
