package oncecache

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/internal/table"
)

// slow is GetOrCreate for a key that has no value. E is the entry that was
// found, or nil. The function is called here and kept nowhere, so that a closure stays on
// its caller's stack.
func (c *Cache[K, V]) slow(k table.Hashed[K], e *entry[K], create func() (V, error)) (v V, err error) {
	r, who := c.shared(), caller{counts: oneCaller}
	if e != nil && r.marked && e.usable() { // LP(GetOrCreate): a hit whose mark has to be written
		return *valueOf[V](e), nil
	}
	for {
		if e = r.current(e); e == nil {
			e = createOrJoin(r, k, create)
		} else {
			r.joins(e)
		}
		last, _, err := e.outcome(&who)
		if err == nil {
			return *valueOf[V](last), nil
		}
		if err != errAgain {
			return v, explain(err, k.Key)
		}
		e, who.joined, who.heir = nil, nil, false
	}
}

// createOrJoin returns an entry whose outcome the caller of k gets. If the caller must create it
// first, createOrJoin has done so, unless the creation would have to wait for its turn and cannot
// be called off: then the outcome is errAgain.
//
// It is apart from slow, so that callers that wait need less stack than a new goroutine
// has: a thousand that come at once would all have to grow theirs.
//
//go:noinline
func createOrJoin[K comparable, V any](r *root[K], k table.Hashed[K], create func() (V, error)) *entry[K] {
	return r.createOrJoin(k, r.of.freshEntry(k.Key), func(e *entry[K]) error {
		v, err := create()
		if err == nil {
			*valueOf[V](e) = v
		}
		return err
	})
}

// createOrJoin is the part of that which does not depend on V. Fresh is the entry that enter may
// insert; create writes its value into that.
func (r *root[K]) createOrJoin(at table.Hashed[K], fresh *entry[K], create func(*entry[K]) error) *entry[K] {
	var (
		p        *phase[K]
		ctx      context.Context
		occupied = r.occupied(at)
	)
	if !occupied {
		p = r.takeSpare()
	}
	if p == nil {
		p = newCreating[K]()
		p.by, p.since = goid.Token(), r.now()
	}
	if occupied { // it may have to wait, so it can be called off
		p.ext = new(extended)
		ctx, p.ext.cancel = atomics.WithCancelCause(context.Background())
		p.participants.Store(uint64(oneCaller | r.extra))
	}
	e, mine := r.enter(at, fresh, p)
	if mine {
		var n creation[K] // no literal, which the compiler would build elsewhere and copy
		n.root, n.entry, n.phase, n.spare, n.ctx = r, e, p, p.spare(), ctx
		n.run(nil, create)
	}
	return e
}

// occupied reports whether a creation of k would have to wait for its turn. Callers ask
// before they enter a creation, so that a creation in the table runs, or can wait there.
func (r *root[K]) occupied(k table.Hashed[K]) bool {
	if r.exclusive(k.Key) && r.claims.isClaimed(k) {
		return true
	}
	if renewals := r.renewals.Load(); renewals != nil {
		e, _ := renewals.root.Load().underWay(k)
		return e != nil
	}
	return false
}

// exclusive reports whether there are claims of k. A key that holds a NaN has none:
// each creation has a key of its own.
func (r *root[K]) exclusive(k K) bool {
	return r.claims != nil && k == k //nolint:staticcheck // false for NaN
}

// enter inserts e, which others have not seen, with phase p, where nothing was found. It
// returns the entry whose outcome the caller gets. Mine tells whether the caller must
// create it first: then it is e.
func (r *root[K]) enter(at table.Hashed[K], e *entry[K], p *phase[K]) (last *entry[K], mine bool) {
	last, begun := r.insert(at, e, p)
	if begun == 0 {
		if s := p.spare(); s != nil {
			r.putBack(s)
		}
		return last, false
	}
	if r.begin(p, begun) {
		n := creation[K]{root: r, entry: e, phase: p, spare: p.spare()}
		n.settle(&result{err: ErrClosed})
		return e, false
	}
	return e, true
}

// insert is the first part of enter. If the caller is to create e, it returns the counts
// that begin adds.
func (r *root[K]) insert(at table.Hashed[K], e *entry[K], p *phase[K]) (last *entry[K], begun tally) {
	if r.before != nil {
		e.state.Store(newPhase(finalState[K]{err: ErrClosed})) // LP(GetOrCreate): closed
		return e, 0
	}
	e.state.Store(p)
	if at.Key != at.Key { //nolint:staticcheck // true for NaN
		r.forget(e) // as if Delete came at once, because no look-up can find it
		return e, onePending
	}
	for {
		now, loaded := r.entries.LoadOrStore(at, e)
		if !loaded {
			return e, oneCreating | onePending
		}
		if now = r.current(now); now != nil {
			r.joins(now)
			return now, 0
		}
		// It was a failure, which is gone now.
	}
}

// creation is one call of a create function. It belongs to the goroutine that
// makes the call.
type creation[K comparable] struct {
	root  *root[K]
	entry *entry[K] // where it began, and finishes unless Delete moves it
	phase *phase[K] // made with the entry; or, if that was a spare, the one that others have put in its place
	spare *spare[K] // nil: it has had a flight from the start
	stop  func()    // the timer of Config.CreateTimeout; nil: there is none

	ctx   context.Context // ends when the creation is called off; nil: it cannot be
	holds bool            // with CloseBeforeCreate: the key is this creation's
	ended bool            // it has ended the flight, and not Set, Close or the timer before
}

// result is how a create function ended.
type result struct {
	err    error       // nil: the value is in the entry of the creation
	limits             // of the value, or the error
	cut    bool        // by a panic or runtime.Goexit, which err tells
	lost   *PanicError // the panic, if the creator may have left and cannot go on with it
}

// limits says for how long the value of a create function, or of Set, is kept, and what it
// weighs; or, of an error, for how long that is kept.
type limits struct {
	until  time.Duration // when a value expires, see noLimit; until when an error is kept, zero: it is not
	weight int64         // of a value; tooHeavy: it is not kept
}

// limitsOf returns the limits of the value of e, which no key has yet. It runs user code. If
// that does not return, and the value is owned, it is closed.
func (r *root[K]) limitsOf(e *entry[K], owned bool) (l limits) {
	if r.sieve != nil {
		l = r.sieve.limitsOfValue(r, e, owned)
	}
	return l
}

// limitsAfter returns the limits after a create function for e that has returned err. It runs
// user code.
func (r *root[K]) limitsAfter(e *entry[K], err error) (l limits) {
	switch {
	case err == nil:
		return r.limitsOf(e, true)
	case r.kept != nil:
		l.until = r.kept.keptUntil(r, e.key, err)
	}
	return l
}

// run calls the function, and settles the creation whichever way the function ends.
// Alone is for cutShort.
func (n *creation[K]) run(alone *PanicError, create func(*entry[K]) error) {
	n.watch()
	if err := n.takeTurn(); err != nil {
		n.settle(&result{err: err})
		return
	}
	returned := false
	defer func() {
		if !returned {
			cutShort(recover(), alone, n.end)
		}
	}()
	err := create(n.entry)
	lims := n.root.limitsAfter(n.entry, err)
	returned = true
	n.end(&result{err: err, limits: lims})
}

// takeTurn waits until the function of n may be called, and returns an error if it must
// not be called any more: because the creation was called off, or ended by Set or by a
// Refresh that made a value. A creation that cannot be called off begins anew if it would
// have to wait.
//
// The functions that wait get the parts of n, so that n itself stays on the stack.
func (n *creation[K]) takeTurn() (err error) {
	r, k := n.root, n.entry.key
	if renewals := r.renewals.Load(); renewals != nil {
		in := renewals.root.Load()
		if e, p := in.underWay(r.at(k)); e != nil {
			err = in.awaited(e, p, candidate[K]{r, n.entry, n.phase, n.ctx})
		}
	}
	if err == nil && r.exclusive(k) {
		n.holds, err = r.claims.takeKey(candidate[K]{r, n.entry, n.phase, n.ctx})
	}
	return err
}

// watch starts the timer of a creation.
func (n *creation[K]) watch() {
	if r := n.root; r.timed != nil {
		n.stop = r.timed(r, n.entry, n.phase)
	}
}

// end counts a call of the function that has ended, and settles it.
func (n *creation[K]) end(how *result) {
	n.count(how)
	if n.root.recorder == nil {
		n.settle(how)
	} else {
		n.settleRecorded(how)
	}
}

// settle ends the flight, wakes the waiters and closes values. Only the creator calls
// it, once.
func (n *creation[K]) settle(end *result) {
	l := n.conclude(end)
	n.finish(l.over)
	n.tell()
	n.follow(l)
}

// tell wakes the waiters, after accounting.finish.
func (n *creation[K]) tell() {
	if n.ended {
		n.phase.end()
	}
}

// disposition says what happens to the outcome of a creation.
type disposition[K comparable] struct {
	over  tally     // counts that finish takes off
	stays bool      // the entry is in the table
	drop  *entry[K] // holds a value to be closed, because no caller and no key has it; or nil
	heard bool      // a caller that waited gets the outcome
}

// follow runs the Close functions that follow the end of the flight. If the entry
// stays, others may be evicted for it.
func (n *creation[K]) follow(l disposition[K]) {
	if f := n.root.follows; f != nil {
		f(n.entry)
	}
	if l.stays {
		n.root.settled(n.entry)
	}
	if l.drop != nil {
		n.root.dispose(l.drop)
	}
}

// readyPhase returns the phase of a new entry of the table that has a value with these
// limits, and so many users.
func (r *root[K]) readyPhase(e *entry[K], l limits, users int64) *phase[K] {
	switch {
	case r.sieve != nil:
		return r.sieve.readyWithPlace(e, l, users, r.close != nil)
	case r.close != nil:
		p := newLeased[K]()
		if users > 0 {
			p.leases.live(users)
		}
		return p
	}
	return nil
}

// conclude ends the flight, but for finish and tell, and runs no user code.
//
// A failed entry leaves the table before any caller can learn of the failure, so that a
// caller that knows of it and calls again starts anew, unless the failure is kept.
func (n *creation[K]) conclude(end *result) (l disposition[K]) {
	r, e, p := n.root, n.entry, n.phase
	if n.stop != nil {
		n.stop()
	}
	if end.err == nil && end.weight == tooHeavy {
		r.sieve.refuseHeavy(r, e)
	}
	if n.spare != nil {
		if end.err == nil && end.weight != tooHeavy && e.state.CompareAndSwap(p, r.readyPhase(e, end.limits, 0)) { // LP(GetOrCreate): a value that nobody waits for
			if l.over = wholeCreation; r.close != nil {
				l.over = oneCreating // the value is pending now
			}
			l.stays = true
			return l
		}
		p = e.flightAdded()
		n.phase = p
	}
	var who participants
	if p.matters(r.counts) {
		who = p.finish() // before the result is known, so that all their leases are in it
	}
	l.over = onePending
	if end.err != nil {
		if blamed := who.blame(); blamed != nil {
			end.err, end.limits = blamed, limits{}
		} else if p.ext != nil && who.callers() == 0 {
			end.limits = limits{} // all have left, and it was to go on all the same
		}
		n.freeTurn()
		if end.until == 0 {
			r.remove(e) // LP(GetOrCreate): a failure, unless the entry was removed
		}
	} else if r.close != nil {
		l.over = 0 // the value is pending now
	}
	l.heard = who.callers() > 0 && !who.has(abandoned|cacheClosed)
	n.ended = true
	now := n.outcome(end, who, true)
	// LP(GetOrCreate): the creator's success, and that of all waiters. So with a failure
	// that is kept; any other failure only becomes known here.
	if e.state.CompareAndSwap(p, now) {
		if !now.kept() {
			l.over += oneCreating
		}
		l.stays = end.err == nil || now.kept()
	} else {
		moved := e.state.Load()
		n.ended = n.forgotten(moved, end, who)
		l.heard = l.heard && n.ended
		switch closes := end.err == nil && r.close != nil; {
		case closes && !n.ended:
			l.drop = r.copied(e) // no longer e, which was to be the key's
		case closes && who.leases() == 0:
			l.drop = moved.final.to
		}
	}
	if p.noted() {
		r.backlog.over(e, p.flight)
	}
	if end.lost != nil && !(l.heard && who.callers() > p.ext.mute.Load()) {
		r.accounting.note(end.lost)
	}
	if l.stays && now.kept() {
		r.kept.keepError(r, now.final.lasts)
	}
	return l
}

// outcome returns the state of an entry after its creation.
func (n *creation[K]) outcome(end *result, who participants, inTable bool) *phase[K] {
	r := n.root
	switch {
	case end.err != nil:
		failed := newPhase(finalState[K]{err: end.err})
		if end.until != 0 {
			failed.final.lasts = &keptError[K]{entry: n.entry, until: end.until}
			if inTable && r.sieve != nil {
				failed.place = r.sieve.placeOfError(n.entry)
			}
		}
		return failed
	case inTable:
		return r.readyPhase(n.entry, end.limits, who.leases())
	case r.close != nil:
		p := newLeased[K]()
		p.leases.dying(who.leases())
		return p
	}
	return nil
}
