package oncecache

import "github.com/latchfree/latchfree/internal/atomics"

// leases counts the users of a value, exactly, and tells one of them that it was the
// last. While the entry is in the table, its users count themselves in words that are
// far apart, whose sum is not known. When the entry has left the table, its remover kills
// the words and gathers their counts in one, which the users that are left count down.
type leases struct {
	// base counts users until two of them collide; see stripes.
	//
	//	live   n ≥ 0       +1 by acquire (CAS), −1 by release
	//	dead   near dead   from the kill on; additions no longer count
	base atomics.Int64

	// stripes is nil until two users collide on base, then points to words
	// like base, or to none if the kill came first. It changes once.
	stripes atomics.Pointer[[]stripe]

	// central is 0 until the kill; then hold plus the counts gathered so far, less the
	// releases since; then, without hold, the number of users left.
	central atomics.Int64

	// why says why the entry has left the table. It is written by the call that
	// removed it, before the kill, and read by the one that closes the value. Zero: the
	// value never was its key's.
	why reason
}

// stripe is a word like leases.base, on a cache line of its own.
type stripe struct {
	users atomics.Int64
	_     [atomics.CacheLineSize - 8]byte
}

const (
	// dead is the value of a killed word: so far below zero that neither releases nor
	// failed acquisitions bring it near zero.
	dead = -1 << 62

	// hold keeps central above zero while the kill is gathering: more than
	// there can be users.
	hold = 1 << 61
)

// live prepares the count of an entry that will be in the table, with n users.
func (l *leases) live(n int64) { l.base.Store(n) }

// dying prepares the count of an entry that no look-up can find, with n users.
func (l *leases) dying(n int64) {
	l.base.Store(dead) // so that no user makes stripes
	l.central.Store(n)
}

// acquire counts the caller and returns the word to release, or nil if the
// words are dead: then the entry has left the table.
func (l *leases) acquire() (held *atomics.Int64) {
	if s := l.stripes.Load(); s != nil {
		return acquireStripe(*s)
	}
	n := l.base.Load()
	if n < 0 {
		return nil
	}
	if l.base.CompareAndSwap(n, n+1) {
		return &l.base
	}
	// Another user came or went, or the kill.
	s := make([]stripe, atomics.Stripes())
	return acquireStripe(*l.stripes.Install(&s))
}

// acquireStripe is acquire on the caller's stripe.
func acquireStripe(s []stripe) (held *atomics.Int64) {
	if len(s) == 0 {
		return nil
	}
	held = &s[atomics.Stripe(len(s))].users
	if held.Add(1) <= 0 {
		return nil
	}
	return held
}

// last completes the release of a user that was counted in held, which shows n
// without it, less than zero. It reports whether this was the last user of an
// entry that has left the table.
func (l *leases) last(held *atomics.Int64, n int64) bool {
	if n < dead/2 {
		n = l.central.Add(-1)
	} else {
		held.Add(1) // so that the kill gathers the count of the others
	}
	if n < 0 {
		panic("oncecache: lease released twice")
	}
	return n == 0
}

// held reports whether there are users. It may be wrong about users that come or go
// meanwhile.
func (l *leases) held() bool {
	users := l.base.Load()
	if s := l.stripes.Load(); s != nil {
		for i := range *s {
			users += (*s)[i].users.Load()
		}
	}
	return users > 0
}

// kill makes acquire fail from now on, and reports whether there are no users
// left. It is called once, by the caller that removed the entry.
func (l *leases) kill() (last bool) {
	l.central.Add(hold)
	users := l.base.Swap(dead)
	if l.stripes.Load() == nil {
		l.stripes.Install(new([]stripe)) // another's if two users have collided
	}
	s := *l.stripes.Load()
	for i := range s {
		users += s[i].users.Swap(dead)
	}
	return l.central.Add(users-hold) == 0
}

// users returns where the users of e's value are counted, whose state is p, or nil if they
// are not.
func (e *entry[K]) users(p *phase[K]) *leases {
	switch {
	case p == nil:
		return nil
	case p.leases != nil:
		return p.leases
	case p.place != nil:
		n := sieveNodeOf[K](p.place)
		if l := n.users.Load(); l != nil {
			return l
		}
		return n.users.Install(new(leases))
	}
	return nil
}

// hold counts a user of e's value, whose state is p, and returns the word to put
// back; nil if there is nothing to keep. It fails if the entry has left the
// table, or is about to.
func (r *root[K]) hold(e *entry[K], p *phase[K]) (held *atomics.Int64, ok bool) {
	return r.holdFor(e, p, (*mark).keep)
}

// holdFor is hold, where keep notes it in the mark.
func (r *root[K]) holdFor(e *entry[K], p *phase[K], keep func(*mark, *place) bool) (held *atomics.Int64, ok bool) {
	l := e.users(p)
	if l == nil {
		return nil, true
	}
	if held = l.acquire(); held == nil || p.place != nil && !keep(e.mark(), p.place) {
		r.giveUp(e, held)
		return nil, false
	}
	return held, true
}

// claim returns the word in which c is counted, if it wants a lease; nil if there is nothing
// to keep. P is the state of e, which has a value. If e has left the table, or is about to,
// the word beside errAgain is to be put back, unless it is nil.
func (e *entry[K]) claim(p *phase[K], c *caller) (held *atomics.Int64, err error) {
	if c.counts != callerAndLease {
		return nil, nil
	}
	l := e.users(p)
	switch {
	case l == nil:
		return nil, nil
	case c.joined != nil:
		return &l.base, nil // the creator has counted it
	}
	if held = l.acquire(); held == nil || p.place != nil && !e.mark().keep(p.place) {
		err = errAgain
	}
	return held, err
}

// wasHeld notes that e, which the caller holds, was in use until now, in a cache
// with an order.
func (r *root[K]) wasHeld(e *entry[K]) { e.mark().held() }

// giveUp takes off a user of e's value that was counted in held, unless held is nil. If
// the value is to be closed then, a goroutine of the cache does that.
func (r *root[K]) giveUp(e *entry[K], held *atomics.Int64) {
	if held != nil && e.countOff(held) {
		r.close.closeOneLater(r, e)
	}
}

// countOff takes off a user of e's value that was counted in held, and reports whether
// the value is to be closed now.
func (e *entry[K]) countOff(held *atomics.Int64) (free bool) {
	n := held.Add(-1)
	return n < 0 && e.isLast(held, n)
}

// isLast completes the release of a user of e's value that was counted in held,
// which shows n without it, less than zero.
func (e *entry[K]) isLast(held *atomics.Int64, n int64) bool {
	return e.users(e.state.Load()).last(held, n)
}
