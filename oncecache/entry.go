package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// entry is one instance of a key: the place where the key's callers meet, and
// the value that they get, which comes after it: see boxed. It is at most once in
// the table, and never comes back once it has left.
//
// The value is written by the creator before state becomes ready or leased, or
// before the entry is shared. It is read only after state was seen so.
type entry[K comparable] struct {
	key K

	// state is nil when the entry is ready. While it is being created, state
	// is the one phase made with it (or moved to it, if Delete made the
	// entry); or it is a spare first, which a call that meets the creation
	// replaces by one made for it. From either, a CAS leads to one of
	//
	//	ready    nil              by the creator
	//	leased   leases is set    by the creator, instead of ready, if values are to be closed
	//	failed   its final state is err  by the creator, which unlinked the entry before unless
	//	                          lasts is set too; by Close; by the timer
	//	moved    its final state is to   by the Set or Delete that took the entry out of the table
	//
	// Nothing leaves those four.
	state atomics.Pointer[phase[K]]
}

// phase is the state of an entry. Its fields never change.
type phase[K comparable] struct {
	*flight                // creating, or moved if the flight has moved along; nil otherwise
	leases  *leases        // leased: the count of users
	place   *place         // ready, leased, failed: the entry's place in the order, if it has one
	final   *finalState[K] // failed, moved; nil otherwise
}

// finalState is the outcome of an entry that will have no value.
type finalState[K comparable] struct {
	err   error         // failed
	lasts *keptError[K] // failed: how long it stays in the table; nil: it does not
	to    *entry[K]     // moved: the entry whose outcome they get
	was   *phase[K]     // the one before, with the flight, unless the creator, or the timer, has ended it
}

// newPhase returns the phase of an entry that has failed, or is moved, so.
func newPhase[K comparable](how finalState[K]) *phase[K] {
	both := new(struct {
		phase[K]
		own finalState[K]
	})
	both.own = how
	both.final = &both.own
	return &both.phase
}

// newCreating returns the phase of an entry that is being created.
func newCreating[K comparable]() *phase[K] {
	both := new(struct {
		own flight // first, so that its words are on one cache line
		phase[K]
	})
	both.flight = &both.own
	return &both.phase
}

// creating reports whether p, read from an entry's state, is that of an entry
// that is being created.
func (p *phase[K]) creating() bool { return p != nil && p.flight != nil && p.final == nil }

// newLeased returns the phase of an entry with a count of leases that is yet
// to be prepared, and which has no place in the order.
func newLeased[K comparable]() *phase[K] {
	both := new(struct {
		phase[K]
		own leases
	})
	both.leases = &both.own
	return &both.phase
}

// ready reports whether p is that of an entry with a value.
func (p *phase[K]) ready() bool {
	return p == nil || p.flight == nil && p.final == nil
}

// kept reports whether p is that of a failure that stays in the table until a call
// removes it, which then also takes it off the tally.
func (p *phase[K]) kept() bool { return p != nil && p.final != nil && p.final.lasts != nil }

// live reports whether p, the state of e, is that of a value that has not expired.
func (e *entry[K]) live(p *phase[K]) bool {
	return p.ready() && (p == nil || p.place == nil || !e.mark().isExpired())
}

// has reports whether e, which may be nil, has a value that has not expired.
func (e *entry[K]) has() bool { return e != nil && e.live(e.state.Load()) }

// inUse reports whether e, of a cache that is marked or not, has a value that may be returned
// without a further look. It reads one word, which is beside the key.
func (e *entry[K]) inUse(marked bool) bool {
	if marked {
		return e.mark().inUse()
	}
	return e.state.Load() == nil
}

// usable notes a use of the value of e, which was found in a table of a cache that is marked,
// where inUse is false. It reports whether there is a value that may be returned.
//
//go:noinline
func (e *entry[K]) usable() bool {
	p := e.state.Load()
	return p.ready() && e.mark().touch(p.place)
}

// readyAfter reports whether e has a value after a CAS from p. The CAS was not tried if p was
// final.
func (e *entry[K]) readyAfter(p *phase[K]) bool { return p.ready() || e.state.Load().ready() }

// current returns e, which was found in the table, or nil if it was nil or is a
// failure that is over, or has expired, or is being evicted; then it is out of the table.
func (r *root[K]) current(e *entry[K]) *entry[K] {
	if e == nil {
		return nil
	}
	p := e.state.Load()
	switch {
	case p == nil:
		return e
	case p.place != nil && e.mark().isOver():
		r.sieve.helpEvict(r, e)
		return nil
	case p.final == nil || p.final.err == nil || p.kept() && (p.final.lasts.until == forever || r.now() < p.final.lasts.until):
		return e
	}
	r.expire(e)
	return nil
}

// settled follows the end of a creation, or Set, that has left an entry in the
// table: the entry takes its place in the order, and others may be evicted.
func (r *root[K]) settled(e *entry[K]) {
	if r.sieve == nil {
		return
	}
	p := e.state.Load()
	if p == nil || p.place == nil {
		return // Close, or the timer, has come between
	}
	r.sieve.givePlace(r, p.place)
}

// caller is one call that wants the outcome of an entry.
type caller struct {
	ctx     context.Context // nil: it cannot end
	counts  participants    // oneCaller or callerAndLease
	joined  *flight         // the flight that the caller has joined, or is the creator of
	heir    bool            // it has joined after all others had left
	created bool            // it is the creator
	part    *flight         // the creation whose function calls; nil: none is known
	known   *flight         // the one that its part is known to wait for already
}

// within sets the fields of a caller that its context determines.
func (c *caller) within(ctx context.Context) {
	if ctx.Done() != nil {
		c.ctx = ctx
	}
	c.part = partOf(ctx)
}

// outcome returns the outcome of e for its callers, and waits for it if need be: an entry
// with a value, and the word in which the caller is counted if it wants a lease and the
// entry has leases; or an error, which is errAgain if the caller must look for the key
// again.
//
// It repeats a few times at most: an entry changes once from creating to
// something else, and is moved at most once, to an entry that stays put.
func (e *entry[K]) outcome(c *caller) (*entry[K], *atomics.Int64, error) {
	for {
		p := e.joinable()
		switch {
		case p == nil:
			return e, nil, nil
		case p.ready():
			held, err := e.claim(p, c)
			return e, held, err
		case p.final != nil && p.final.to != nil:
			if p.flight == nil {
				c.joined, c.created = nil, false // the value is of another origin
			}
			e = p.final.to
		case p.final != nil:
			if p.place != nil {
				e.mark().touch(p.place)
			}
			if c.heir && p.final.err == ErrCreateTimeout {
				return nil, nil, errAgain // it was no caller's time that is over
			}
			return nil, nil, p.final.err
		default:
			if err := e.await(p, c); err != nil {
				return nil, nil, err
			}
		}
	}
}

// include makes c a caller of the creation of e, if that is under way, before it
// waits.
func (e *entry[K]) include(c *caller) {
	if p := e.joinable(); p.creating() {
		p.include(c)
	}
}

// include counts c among the participants, unless it is counted already or f counts none.
func (f *flight) include(c *caller) {
	if c.joined != nil || !f.matters(c.counts) {
		return
	}
	if now := f.join(c.counts); !now.has(finished) {
		c.joined, c.heir = f, now.has(abandoned)
	}
}

// await returns nil when e may no longer show p, a creation in progress, or an
// error if c has left: because its context has ended, or because it would wait
// for itself.
//
// No wake-up is lost: the caller publishes the event and then looks at state; the call
// that ends the flight changes state and then looks for the event.
//
// It waits itself, and code that few callers need is apart: the fewer and smaller the
// frames, the more of the callers that come at once on new goroutines do with the stack
// that they begin with.
func (e *entry[K]) await(p *phase[K], c *caller) (err error) {
	p.include(c)
	w := p.event()
	if e.state.Load() != p {
		return nil
	}
	var d *dependence
	switch {
	case p.runsHere():
		err = errRecursion
	case c.part != nil && c.known != p.flight:
		d, err = c.part.depend(p.flight, e.key, waits)
	}
	if err == nil {
		p.waits(1)
		if c.ctx == nil {
			w.Wait()
		} else {
			err = w.WaitContext(c.ctx)
		}
		p.waits(-1)
	}
	if d != nil {
		d.end()
	}
	switch {
	case err == nil:
	case e.state.Load() != p: // an outcome comes before an error; or Delete has moved the flight
	case c.joined == nil || c.joined.leave(c.counts):
		return err // LP(GetOrCreateContext): left; LP(Acquire): left
	default:
		c.ctx = nil // the flight has finished: the outcome will be there in a moment
	}
	return nil
}

// forget moves the flight of e, if e is being created, to an entry of its own,
// so that e itself never shows a value.
func (e *entry[K]) forget(of values[K]) (p *phase[K], left bool) {
	p = e.joinable()
	if !p.creating() {
		return p, false
	}
	n := of.freshEntry(e.key)
	n.state.Store(p)
	moved := newPhase(finalState[K]{to: n, was: p})
	moved.flight = p.flight
	return p, e.state.CompareAndSwap(p, moved)
}

// failed reports whether e has failed.
func (e *entry[K]) failed() bool {
	p := e.state.Load()
	return p != nil && p.final != nil && p.final.err != nil
}

// hasExpired reports whether e has a value that has expired.
func (e *entry[K]) hasExpired() bool {
	p := e.state.Load()
	return p.ready() && !e.live(p)
}
