package oncecache

import (
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A cache with Config.MaxEntries or Config.IdleTimeout keeps its entries in the
// order in which they came. A hit sets a mark, if it is not set, and moves
// nothing: so in steady state it writes nothing. Who adds an entry too many
// looks for one to evict: from the oldest towards the newest, beginning where
// the last search ended, it takes the first whose mark is not set, and clears
// those that it passes. That is SIEVE, by Yazhuo Zhang and others, NSDI 2024.

// standing is the place of an entry in the order.
type standing[K comparable] struct {
	mark // first, so that a *mark can be converted back

	entry *entry[K]

	// users counts leases where values are not closed, so that their entries
	// have no count of their own. It is made by the first of them.
	users atomics.Pointer[leases]

	// What follows is under order.mu.
	newer, older *standing[K]
	seen         time.Duration // when the entry was last found to have been used
	stage        stage
}

// stage is where a standing is. It only grows.
type stage uint8

const (
	coming stage = iota // not yet in the order
	there
	left
)

// order lists the entries that are in the table and have an outcome, from the
// newest to the oldest.
type order[K comparable] struct {
	max  int           // Config.MaxEntries; zero: no bound
	idle time.Duration // Config.IdleTimeout; zero: none

	sweeping atomics.Mutex // held by who sweeps, and taken before mu

	mu             atomics.Mutex
	newest, oldest *standing[K]
	hand           *standing[K] // where the next search begins; nil: at the oldest
	swept          *standing[K] // where the sweep goes on; nil: nowhere
	len            int
	next           *sweeper // starts the next sweep, or has started one; nil: there is none
}

// bounds is an order. It is an interface, and the names of its methods are their own,
// so that only New brings an order into a program.
type bounds[K comparable] interface {
	givePlace(r *root[K], m *mark)
	takePlace(m *mark)
	leavePlace(to, from *mark) (out []*standing[K], ok bool)
	sweepPlaces(r *root[K]) (removed int)
	sweepAgain(r *root[K], s *sweeper)
}

// stand returns the mark of a new entry, or nil if the cache has no order.
func (r *root[K]) stand(e *entry[K]) *mark {
	if r.order == nil {
		return nil
	}
	return &(&standing[K]{entry: e}).mark
}

// standingOf converts a mark back.
func standingOf[K comparable](m *mark) *standing[K] {
	// Safety: only stand makes marks, as the first field of a standing of the
	// same cache.
	return (*standing[K])(unsafe.Pointer(m))
}

// leased reports whether anyone holds a lease of the entry.
func (s *standing[K]) leased() bool {
	l := s.users.Load()
	if p := s.entry.state.Load(); p != nil && p.leases != nil {
		l = p.leases
	}
	return l != nil && l.held()
}

// givePlace is add, and evicts what that takes out.
func (o *order[K]) givePlace(r *root[K], m *mark) { r.evictAll(o.add(r, standingOf[K](m))) }

// add puts s in the order, unless its entry has left the table before, and
// takes out those for which there is no room then.
func (o *order[K]) add(r *root[K], s *standing[K]) (out []*standing[K]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.stage == left {
		return nil
	}
	s.stage, s.older, o.newest = there, o.newest, s
	if s.older != nil {
		s.older.newer = s
	} else {
		o.oldest = s
	}
	o.len++
	if o.idle > 0 {
		s.seen = r.now()
		o.arm(r)
	}
	return o.tooMany(s)
}

// tooMany takes out those for which there is no room beside s. The caller holds
// mu.
func (o *order[K]) tooMany(s *standing[K]) (out []*standing[K]) {
	for o.max > 0 && o.len > o.max {
		v := o.victim(s)
		if v == nil {
			break
		}
		o.remove(v)
		out = append(out, v)
	}
	return out
}

// manyLeased is how many leased entries a search for a victim passes before it
// leaves the rest to the next.
const manyLeased = 64

// victim dooms the entry that has to make room for the newest, and returns it, or
// nil if leases hold all others, or very many. The caller holds mu.
func (o *order[K]) victim(newest *standing[K]) *standing[K] {
	leased := 0
	// The first time round clears all marks. Hits may set them again, so the
	// third does not ask.
	for i := range 3 * o.len {
		s := o.hand
		if s == nil {
			s = o.oldest
		}
		o.hand = s.newer
		asks := uint32(usedForSieve)
		if i >= 2*o.len {
			asks = 0
		}
		if s == newest {
			continue
		}
		used := s.asked(asks)
		if s.leased() {
			if leased++; leased == manyLeased {
				return nil
			}
		} else if !used && s.doom(s.leased, asks) {
			return s
		}
	}
	return nil
}

// remove takes s out of the order. The caller holds mu.
func (o *order[K]) remove(s *standing[K]) {
	if o.hand == s {
		o.hand = s.newer
	}
	if o.swept == s {
		o.swept = s.newer
	}
	o.link(s.older, s.newer)
	s.newer, s.older, s.stage = nil, nil, left
	o.len--
}

// link makes two entries neighbours. A nil stands for the end. The caller holds mu.
func (o *order[K]) link(older, newer *standing[K]) {
	if newer != nil {
		newer.older = older
	} else {
		o.newest = older
	}
	if older != nil {
		older.newer = newer
	} else {
		o.oldest = newer
	}
}

// takePlace takes m out of the order because its entry has left the table.
func (o *order[K]) takePlace(m *mark) {
	s := standingOf[K](m)
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.stage == there {
		o.remove(s)
	}
	s.stage = left
	if o.len == 0 && o.next != nil {
		o.next.stop()
		o.next = nil
	}
}

// leavePlace gives the place of s to n, whose entry has taken that of s in the table,
// as if it had been there all the time, and takes out what there is no room for.
// If s is being evicted, n goes instead, unless it has been used. It fails if s has
// no place any more, or not yet.
func (o *order[K]) leavePlace(to, from *mark) (out []*standing[K], ok bool) {
	n, s := standingOf[K](to), standingOf[K](from)
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.isDoomed() && n.stage == coming && n.doom(n.leased, usedForBoth) {
		n.stage = left
		return []*standing[K]{n}, true
	}
	if s.stage != there || n.stage != coming {
		return nil, false
	}
	older, newer := s.older, s.newer
	if o.hand == s {
		o.hand = n
	}
	if o.swept == s {
		o.swept = n
	}
	o.link(older, n)
	o.link(n, newer)
	n.seen, n.stage = s.seen, there
	n.used.Or(s.used.Load() & usedForBoth)
	s.newer, s.older, s.stage = nil, nil, left
	return o.tooMany(n), true
}
