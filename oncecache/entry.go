package oncecache

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// entry is one instance of a key: the slot of its value, and the place where the callers of
// the key meet. It is in the table at most once, from one insertion to one removal.
type entry[K comparable, V any] struct {
	key  K    // first, where the table looks for it
	mark mark // whether a hit may return value without a look at state

	// state changes by CAS only:
	//
	//	creating → ready    by the creator, which has written value before
	//	         → failed   by the creator, the timer of CreateTimeout, or Close
	//	         → moved    by the call that took the entry out of the table: Set, Delete and the like,
	//	                    or the creator of what is not kept; or by a Refresh that leaves the old value
	//	ready    → ready    with or without next, by Refresh
	//
	// Nil is ready with nothing attached. Failed and moved are final, and so is closing, which
	// an entry is from the start.
	state atomics.Pointer[state[K, V]]

	// value is written by the creator before state becomes ready; by Set and SetIfAbsent
	// before the entry is shared. It never changes afterwards.
	value V
}

// state is what an entry is. Its fields never change once it is shared.
type state[K comparable, V any] struct {
	flight *flight       // creating; moved, if the flight goes on for the entry moved to
	users  *leases       // ready: who uses the value; nil: nothing depends on that
	node   *node[K, V]   // ready, kept: the place in the order; nil: it has none
	next   *entry[K, V]  // ready: the entry with which a Refresh is to replace this one
	end    *ending[K, V] // failed, moved, closing
}

// ending is how an entry has ended that has no value. It is closing if err and to are nil.
type ending[K comparable, V any] struct {
	err   error         // failed
	keeps bool          // failed: the error answers for the key until then, unless that is removed
	until time.Duration // with keeps
	to    *entry[K, V]  // moved: its outcome is that of this entry
	claim *claim        // failed, closing, or moved while the function runs: counts what is left of the key; nil without CloseBeforeCreate
}

func (s *state[K, V]) creating() bool { return s != nil && s.flight != nil && s.end == nil }
func (s *state[K, V]) ready() bool    { return s == nil || s.flight == nil && s.end == nil }
func (s *state[K, V]) closing() bool {
	return s != nil && s.end != nil && s.end.err == nil && s.end.to == nil
}

// kept reports whether s is that of an error that answers for its key. Whoever takes the
// entry out of the table also takes it off the entries without a value.
func (s *state[K, V]) kept() bool { return s != nil && s.end != nil && s.end.keeps }

// making returns the entry that a Refresh is making to replace the one in state s, or nil.
func (s *state[K, V]) making() *entry[K, V] {
	if s == nil {
		return nil
	}
	return s.next
}

// claim returns what counts the functions and values of the key, or nil without CloseBeforeCreate.
func (s *state[K, V]) claim() *claim {
	switch {
	case s == nil:
		return nil
	case s.creating():
		return s.flight.claim
	case s.users != nil:
		return s.users.claim
	case s.end != nil:
		return s.end.claim
	}
	return nil
}

func failedState[K comparable, V any](err error, claim *claim) *state[K, V] {
	return &state[K, V]{end: &ending[K, V]{err: err, claim: claim}}
}

func movedState[K comparable, V any](to *entry[K, V]) *state[K, V] {
	return &state[K, V]{end: &ending[K, V]{to: to}}
}

// has reports whether e, which may be nil, has a value that has not expired.
func (e *entry[K, V]) has() bool {
	return e != nil && (e.mark.inUse() || e.state.Load().ready() && !e.mark.isExpired())
}

// mark says whether an entry was used, and whether it is to leave. A hit on an entry that was used
// reads nothing else. Nobody clears the used bits of an entry without a place in the order.
type mark struct{ bits atomics.Uint32 }

const (
	usedForSieve = 1 << iota // since the hand passed
	usedForIdle              // since it was last asked
	probed                   // an evictor is looking for leases
	doomed                   // the entry is being evicted; final
	idle                     // it is evicted because nobody has used it
	expired                  // its value must not be returned any more; final
	due                      // the next use begins to renew it
	noValue                  // it has a kept error

	usedForBoth = usedForSieve | usedForIdle
)

// inUse reports whether the entry has a value, which may be returned without a further look:
// whoever set the bits had seen it.
func (m *mark) inUse() bool { return m.bits.Load() == usedForBoth }

// touch notes a use of an entry whose outcome the caller has seen. Live tells whether its value
// may be returned, and renew whether the caller has to renew it.
func (m *mark) touch() (live, renew bool) {
	now := m.bits.Load()
	if now&expired != 0 {
		return false, false
	}
	if now&usedForBoth != usedForBoth {
		m.bits.Or(usedForBoth)
	}
	return true, now&due != 0 && m.bits.And(^uint32(due))&due != 0
}

// keep makes an evictor see a lease that the caller is counted in. It fails if the entry is to
// leave. A holder that is counted before probed is set is found by the evictor; one that is
// counted later finds probed, and clears it.
func (m *mark) keep(isUse bool) (ok, renew bool) {
	for {
		now := m.bits.Load()
		next := now &^ probed
		if isUse {
			next = next&^due | usedForBoth
		}
		switch {
		case now&(doomed|expired) != 0:
			return false, false
		case now == next || m.bits.CompareAndSwap(now, next):
			return true, now&^next&due != 0
		}
	}
}

// held notes that the entry was in use until now.
func (m *mark) held() {
	if m.bits.Load()&usedForIdle == 0 {
		m.bits.Or(usedForIdle)
	}
}

// asked reports whether the entry was used since the last call for this bit. Only a call that
// has locked the order asks.
func (m *mark) asked(bit uint32) bool {
	return m.bits.Load()&bit != 0 && m.bits.And(^bit)&bit != 0
}

// doom decides that the entry is evicted, unless a lease holds it or a bit of asks is set. Why
// is idle or zero. Only a call that has locked the order calls it.
func (m *mark) doom(leased func() bool, asks, why uint32) bool {
	m.bits.Or(probed)
	if leased() {
		m.bits.And(^uint32(probed))
		return false
	}
	for {
		now := m.bits.Load()
		if now&asks != 0 || now&probed == 0 {
			m.bits.And(^uint32(probed))
			return false
		}
		if m.bits.CompareAndSwap(now, now|doomed|why) {
			return true
		}
	}
}

func (m *mark) is(bits uint32) bool { return m.bits.Load()&bits != 0 }
func (m *mark) isExpired() bool     { return m.is(expired) }
func (m *mark) isOver() bool        { return m.is(doomed | expired) }

// use reports whether e, which was found in the table, has a value that may be returned, and notes the use.
func (r *root[K, V]) use(e *entry[K, V]) bool {
	if e.mark.inUse() {
		return true
	}
	if !e.state.Load().ready() {
		return false
	}
	live, renew := e.mark.touch()
	if renew {
		r.renewSoon(e)
	}
	return live
}

// current returns e, which was found in the table or is nil. If e must not answer any more, it is out of the
// table then, and current returns nil: so whoever meets it does what is left of another call's removal.
func (r *root[K, V]) current(e *entry[K, V]) *entry[K, V] {
	if e == nil {
		return nil
	}
	s := e.state.Load()
	switch {
	case s.creating() || s.ready() && !e.mark.isOver():
		return e
	case s.ready() || s.kept() && e.mark.isOver():
		r.later(r.evict(e))
	case s.kept() && (s.end.until == never || r.now() < s.end.until):
		return e
	case s.closing() && !s.end.claim.isGone():
		return e
	default:
		r.drop(e)
	}
	return nil
}

// drop takes an entry that has no value out of the table, unless another call has.
func (r *root[K, V]) drop(e *entry[K, V]) {
	if r.vacate(e) {
		r.uncount(e)
	}
}

// caller is one call that wants the outcome of an entry.
type caller struct {
	ctx    context.Context // nil: it cannot end
	counts participants    // oneCaller or callerAndLease
	joined *flight         // the flight in which it is counted
	heir   bool            // it has joined after all others had left
	gone   bool            // it only gives up what it is counted in
	part   *flight         // the creation whose function makes the call; nil: none is known
	known  *flight         // the one that part is known to wait for
}

// outcome returns the outcome of e for a caller, and waits for it if need be: an entry with a value, and the
// word in which the caller is counted if it wants a lease and leases are counted; or an error. After errAgain,
// the caller has to look for the key again.
//
// It repeats a few times at most: an entry leaves creating once, and is moved to one that stays.
func (r *root[K, V]) outcome(e *entry[K, V], who *caller) (last *entry[K, V], held *atomics.Int64, err error) {
	for {
		s := e.state.Load()
		switch {
		case s.ready():
			if who.counts == callerAndLease {
				held, err = r.lease(e, s, who)
			}
			return e, held, err
		case s.creating():
			if err := e.await(s, who); err != nil {
				return nil, nil, err
			}
		case s.end.to != nil:
			if s.flight == nil {
				who.joined = nil // the value is of another origin
			}
			e = s.end.to
		case s.closing():
			return nil, nil, r.awaitFree(e, who)
		default:
			if s.kept() {
				e.mark.touch()
			}
			if who.heir && s.end.err == ErrCreateTimeout {
				return nil, nil, errAgain // the time of others is up
			}
			return nil, nil, s.end.err
		}
	}
}

// await returns nil when e may no longer be in state s, which is creating, or an error if the
// caller has left: because its context has ended, or because it would wait for itself.
//
// No wake-up is lost: the caller publishes the event and then looks at state; whoever ends
// the flight changes state and then looks for the event.
//
// It waits itself, and what few callers need is apart: a new goroutine's stack has room for
// few and small frames, and is copied when it has to grow.
func (e *entry[K, V]) await(s *state[K, V], who *caller) (err error) {
	f := s.flight
	if who.joined == nil && f.counted(who.counts) {
		f.include(who)
	}
	w := f.event()
	if e.state.Load() != s {
		return nil
	}
	var d *dependence
	switch {
	case f.runsHere():
		err = errRecursion
	case who.part != nil && who.known != f:
		d, err = who.part.depend(f, e.key, waits)
	}
	if err == nil {
		f.waiting.Add(1)
		if who.ctx == nil {
			w.Wait()
		} else {
			err = w.WaitContext(who.ctx)
		}
		f.waiting.Add(-1)
	}
	if d != nil {
		d.end()
	}
	switch {
	case err == nil:
	case e.state.Load() != s: // an outcome goes before an error
	case who.joined == nil || who.joined.leave(who.counts):
		return err // LP(GetOrCreateContext): left; LP(Acquire): left
	default:
		who.ctx = nil // the flight has finished: its outcome is a few steps away
	}
	return nil
}
