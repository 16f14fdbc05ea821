package oncecache

import (
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A cache with Config.MaxEntries, Config.MaxWeight or Config.IdleTimeout keeps its entries in the
// order in which they came. A hit sets a mark, if it is not set, and moves
// nothing: so in steady state it writes nothing. A call that adds an entry too many
// looks for one to evict: from the oldest towards the newest, beginning where the last
// search ended, it takes the first whose mark is not set, and clears the marks that it
// passes. That is SIEVE, by Yazhuo Zhang and others, NSDI 2024.

// place is what a phase knows of a sieveNode.
type place struct {
	// life is nil if the value does not expire, nil → non-nil once, under sieve.mu or before
	// the phase is shared. A use reads it that has found due, which came later.
	life *lifetime
}

// sieveNode is the place of an entry in the order.
type sieveNode[K comparable] struct {
	place // first, so that a *place can be converted back

	entry *entry[K]

	// users counts leases where values are not closed, so that their entries
	// have no count of their own. It is made by the first of them.
	users atomics.Pointer[leases]

	weight int64 // that of the value, or zero without Config.MaxWeight; never changes

	// The fields that follow are under sieve.mu.
	newer, older *sieveNode[K]
	seen         time.Duration // when the entry was last found to have been used
	stage        stage
}

// stage is where a sieve node is. It only grows.
type stage uint8

const (
	coming stage = iota // not yet in the order
	there
	left
)

// sieve lists the entries that are in the table and have an outcome, from the
// newest to the oldest.
type sieve[K comparable] struct {
	max       int                   // Config.MaxEntries; zero: no bound
	maxWeight int64                 // Config.MaxWeight; zero: no bound
	weighs    func(*entry[K]) int64 // calls Config.Weight; nil: there is no MaxWeight
	idle      time.Duration         // Config.IdleTimeout; zero: none

	sweeping atomics.Mutex // held by a sweep, and taken before mu

	mu             atomics.Mutex
	newest, oldest *sieveNode[K]
	hand           *sieveNode[K] // where the next search begins; nil: at the oldest
	swept          *sieveNode[K] // where the sweep goes on; nil: nowhere
	len            int
	weight         weightSum      // of all
	shown          *atomics.Gauge // accounting.weight, which shows it; never changes
	next           *sweeper       // starts the next sweep, or has started one; nil: there is none

	lives *lifetimes[K] // nil: without Config.TTL
}

// bounded is an order. It is an interface, and the names of its methods are their own,
// so that only New brings an order into a program.
type bounded[K comparable] interface {
	placeOfError(e *entry[K]) *place
	readyWithPlace(e *entry[K], l limits, users int64, owned bool) *phase[K]
	givePlace(r *root[K], at *place)
	takePlace(r *root[K], at *place)
	helpEvict(r *root[K], e *entry[K])
	limitsOfValue(r *root[K], e *entry[K], owned bool) limits
	lastsAgain(r *root[K], e *entry[K]) time.Duration
	prolong(r *root[K], at *place, until time.Duration) bool
	leavePlace(r *root[K], to, from *place) (out []*sieveNode[K], ok bool)
	sweepPlaces(r *root[K]) (removed int)
	sweepAgain(r *root[K], s *sweeper)
	expireAgain(r *root[K], by *sweeper)
	refuseHeavy(r *root[K], e *entry[K])
	setHeavy(r *root[K], n *entry[K]) (old *entry[K])
}

// sieveNodeOf converts a place back.
func sieveNodeOf[K comparable](at *place) *sieveNode[K] {
	// Safety: only placeOfError and readyWithPlace make places, as the first field of a sieve node
	// of the same cache.
	return (*sieveNode[K])(unsafe.Pointer(at))
}

// mark returns the mark of the entry.
func (n *sieveNode[K]) mark() *mark { return n.entry.mark() }

// leased reports whether anyone holds a lease of the entry.
func (n *sieveNode[K]) leased() bool {
	l := n.users.Load()
	if p := n.entry.state.Load(); p != nil && p.leases != nil {
		l = p.leases
	}
	return l != nil && l.held()
}

// placeOfError returns the place of e, which is about to fail, and will stay.
func (s *sieve[K]) placeOfError(e *entry[K]) *place {
	e.mark().used.Store(noValue)
	return &(&sieveNode[K]{entry: e}).place
}

// readyWithPlace is root.readyPhase. Owned says that the cache closes values. Phase and node
// are one object.
func (s *sieve[K]) readyWithPlace(e *entry[K], l limits, users int64, owned bool) (p *phase[K]) {
	var n *sieveNode[K]
	if owned {
		all := new(struct {
			phase[K]
			node sieveNode[K]
			own  leases
		})
		p, n = &all.phase, &all.node
		p.leases = &all.own
	} else {
		both := new(struct {
			phase[K]
			node sieveNode[K]
		})
		p, n = &both.phase, &both.node
	}
	n.entry, n.weight, p.place = e, l.weight, &n.place
	if users > 0 {
		e.users(p).live(users)
	}
	s.lives.limit(n, l.until)
	return p
}

// givePlace is add, and evicts the nodes that add takes out.
func (s *sieve[K]) givePlace(r *root[K], at *place) { r.evictAll(s.add(r, sieveNodeOf[K](at))) }

// add puts n in the order, unless its entry has left the table before, and
// takes out those for which there is no room then.
func (s *sieve[K]) add(r *root[K], n *sieveNode[K]) (out []*sieveNode[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.stage == left {
		return nil
	}
	if n.mark().isExpired() {
		n.stage = left
		return []*sieveNode[K]{n}
	}
	n.stage, n.older, s.newest = there, s.newest, n
	if n.older != nil {
		n.older.newer = n
	} else {
		s.oldest = n
	}
	s.len++
	s.weigh(n, nil)
	if s.idle > 0 {
		n.seen = r.now()
		s.arm(r, n.seen)
	}
	s.lives.push(r, n)
	return s.tooMany(n)
}

// tooMany takes out those for which there is no room beside s. The caller holds
// mu.
func (s *sieve[K]) tooMany(n *sieveNode[K]) (out []*sieveNode[K]) {
	for s.max > 0 && s.len > s.max || s.maxWeight > 0 && s.weight.exceeds(s.maxWeight) {
		v := s.victim(n)
		if v == nil {
			break
		}
		s.remove(v)
		out = append(out, v)
	}
	return out
}

// manyLeased is how many leased entries a search for a victim passes before it
// leaves the rest to the next.
const manyLeased = 64

// victim dooms the entry that has to make room for the newest, and returns it, or
// nil if leases hold all others, or very many. The caller holds mu.
func (s *sieve[K]) victim(newest *sieveNode[K]) *sieveNode[K] {
	leased := 0
	// The first time round clears all marks. Hits may set them again, so the
	// third does not ask.
	for i := range 3 * s.len {
		n := s.hand
		if n == nil {
			n = s.oldest
		}
		s.hand = n.newer
		asks := uint32(usedForSieve)
		if i >= 2*s.len {
			asks = 0
		}
		if n == newest {
			continue
		}
		used := n.mark().asked(asks)
		if n.leased() {
			if leased++; leased == manyLeased {
				return nil
			}
		} else if !used && n.mark().doom(n.leased, asks, 0) {
			return n
		}
	}
	return nil
}

// remove takes n out of the order. The caller holds mu.
func (s *sieve[K]) remove(n *sieveNode[K]) {
	if s.hand == n {
		s.hand = n.newer
	}
	if s.swept == n {
		s.swept = n.newer
	}
	s.link(n.older, n.newer)
	n.newer, n.older, n.stage = nil, nil, left
	s.len--
	s.weigh(nil, n)
	s.lives.drop(n)
}

// link makes two entries neighbours. A nil stands for the end. The caller holds mu.
func (s *sieve[K]) link(older, newer *sieveNode[K]) {
	if newer != nil {
		newer.older = older
	} else {
		s.newest = older
	}
	if older != nil {
		older.newer = newer
	} else {
		s.oldest = newer
	}
}

// takePlace takes the node of at out of the order because its entry has left the table.
func (s *sieve[K]) takePlace(r *root[K], at *place) {
	n := sieveNodeOf[K](at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.stage == there {
		s.remove(n)
	}
	n.stage = left
	if n.life != nil && n.life.left != nil {
		n.life.left()
	}
	if n.mark().isExpired() { // or it never will, as it has left
		r.accounting.expired.Add(1)
	}
	if s.len == 0 && s.next != nil {
		s.next.end()
		s.next = nil
	}
	s.lives.rest()
}

// leavePlace gives the place of from to to, whose entry has taken that of from in the table,
// as if it had been there all the time, and takes out the nodes for which there is no room.
// If from is being evicted, to goes instead, unless it has been used. It fails if from has
// no place any more, or not yet.
func (s *sieve[K]) leavePlace(r *root[K], to, from *place) (out []*sieveNode[K], ok bool) {
	n, old := sieveNodeOf[K](to), sieveNodeOf[K](from)
	s.mu.Lock()
	defer s.mu.Unlock()
	m, was := n.mark(), old.mark()
	if was.isDoomed() && n.stage == coming && m.doom(n.leased, usedForBoth, was.used.Load()&idle) {
		n.stage = left
		return []*sieveNode[K]{n}, true
	}
	if old.stage != there || n.stage != coming || m.isExpired() {
		return nil, false
	}
	older, newer := old.older, old.newer
	if s.hand == old {
		s.hand = n
	}
	if s.swept == old {
		s.swept = n
	}
	s.link(older, n)
	s.link(n, newer)
	n.seen, n.stage = old.seen, there
	m.used.Or(was.used.Load() & usedForBoth)
	old.newer, old.older, old.stage = nil, nil, left
	s.weigh(n, old)
	s.lives.drop(old)
	s.lives.push(r, n)
	return s.tooMany(n), true
}
