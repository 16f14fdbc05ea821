package oncecache

import (
	"context"
	"runtime/debug"
)

// slow is GetOrCreate for a key that has no value. E is the entry that was
// found, or nil. The function is called here and kept nowhere, so that a
// closure stays on its caller's stack.
func (c *Cache[K, V]) slow(k K, e *entry[V], create func() (V, error)) (v V, err error) {
	r, who := c.shared(), caller{seat: oneCaller}
	for {
		if e == nil {
			p, mine := new(phase[V]), false
			if e, mine = c.enter(r, k, p); mine {
				r.create(k, e, p, create)
			}
		}
		last, _, err := e.outcome(&who)
		if err == nil {
			return last.value, nil
		}
		if err != errAgain {
			return v, err
		}
		e, who.aboard = nil, nil
	}
}

// enter returns an entry whose outcome the caller of k gets. Mine tells whether
// the caller must create it first: then p is its phase.
func (c *Cache[K, V]) enter(r *root[K, V], k K, p *phase[V]) (e *entry[V], mine bool) {
	e = new(entry[V])
	if r.before != nil {
		e.state.Store(&phase[V]{err: ErrClosed}) // LP(GetOrCreate): closed
		return e, false
	}
	e.state.Store(p)
	begun := oneCreating | onePending
	if !r.storable(k) {
		e.forget()
		c.hide(r, &p.flight) // as if Delete came at once, because nobody can find it
		begun = onePending
	} else if now, loaded := r.entries.LoadOrStore(k, e); loaded {
		return now, false
	}
	if r.books.begin(begun) {
		r.settle(k, e, p, e.value, ErrClosed, nil)
		return e, false
	}
	return e, true
}

// create calls the function for e, which the caller has entered, and settles
// it whichever way the function ends.
func (r *root[K, V]) create(k K, e *entry[V], p *phase[V], create func() (V, error)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		var zero V
		thrown := recover()
		if thrown == nil { // or a panic(nil) with GODEBUG=panicnil=1, which ends here
			r.settle(k, e, p, zero, ErrGoexit, nil)
			return
		}
		r.settle(k, e, p, zero, &PanicError{Value: thrown, Stack: debug.Stack()}, nil)
		panic(thrown) // here, where the frames of the first panic are still on the stack
	}()
	v, err := create()
	returned = true
	r.settle(k, e, p, v, err, nil)
}

// createAlone is create on a goroutine of its own, which a panic does not
// leave: thrown, which is otherwise unused, becomes the error.
func (r *root[K, V]) createAlone(ctx context.Context, k K, e *entry[V], p *phase[V], create func(context.Context, K) (V, error), thrown *PanicError) {
	var v V
	err := ErrGoexit // until create returns
	defer func() {
		x := recover()
		if x == nil {
			r.settle(k, e, p, v, err, nil)
			return
		}
		*thrown = PanicError{Value: x, Stack: debug.Stack()}
		r.settle(k, e, p, v, thrown, thrown)
	}()
	v, err = create(ctx, k)
}

// settle ends the flight of p, the phase made with e, in v, or in err if there
// is one. Only the creator calls it, once. If err is a panic that the creator
// cannot go on with, it is lost as well.
//
// A failed entry leaves the table before anyone can learn of the failure, so
// that whoever knows of it and calls again starts anew.
func (r *root[K, V]) settle(k K, e *entry[V], p *phase[V], v V, err error, lost *PanicError) {
	var who crew
	if p.counts(r.seat) {
		who = p.land() // before the result is known, so that all their leases are in it
	}
	over, drop := onePending, false
	if err != nil {
		err = who.blame(err)
		r.entries.CompareAndDelete(k, e) // LP(GetOrCreate): a failure, unless the entry was removed
	} else {
		e.value = v
		if r.close != nil {
			over = 0 // the value is pending now
		}
	}
	heard := who.callers() > 0 && !who.has(abandoned|grounded)
	// LP(GetOrCreate): the creator's success, and that of everyone who waited
	// for it. A failure only becomes known here.
	if e.state.CompareAndSwap(p, r.landing(err, who, true)) {
		over += oneCreating
	} else if n := e.state.Load().to; n != nil && n.state.Load() == p {
		// Forgotten: Delete moved the flight to n, which only its callers
		// reach, and where nobody but the creator writes.
		if err == nil {
			n.value = v
		}
		n.state.Store(r.landing(err, who, false)) // LP(GetOrCreate): a forgotten creation
		drop = who.leases() == 0
	} else {
		heard, drop = false, true // Set or Close has ended the flight
		p = nil
	}
	if lost != nil && !heard {
		r.books.note(lost)
	}
	if over != 0 {
		r.books.finish(over)
	}
	if p != nil {
		p.end()
	}
	if drop && err == nil && r.close != nil {
		r.dispose(k, v)
	}
}

// blame returns what the callers of a creation get that failed with err.
func (c crew) blame(err error) error {
	switch {
	case c.has(grounded):
		return ErrClosed
	case c.has(abandoned):
		return errAgain // those who are aboard came after the cancellation
	}
	return err
}

// landing returns what the state of an entry becomes when its creation ends.
func (r *root[K, V]) landing(err error, who crew, inTable bool) *phase[V] {
	if err != nil {
		return &phase[V]{err: err}
	}
	if r.close == nil {
		return nil
	}
	p := newLeased[V]()
	if inTable {
		p.leases.live(who.leases())
	} else {
		p.leases.dying(who.leases())
	}
	return p
}
