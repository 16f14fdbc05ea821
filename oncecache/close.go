package oncecache

import (
	"context"
)

// Close closes the cache, which is empty from then on. Callers that ask for a key or
// wait for a creation get [ErrClosed] at once. The contexts of create functions that
// run are cancelled, with ErrClosed as cause, and values that they still return are
// not kept.
//
// If there is a Config.Close function, it is then called for every value that no
// lease holds, for several at a time on goroutines of the cache, and for the
// others when their last lease is released. Close waits for that and for create
// functions that run, until ctx ends. Then it returns a [*PendingError], which
// wraps the error of ctx and names the keys that Close has not waited for; the
// closing goes on without it. Joined with that, Close returns the errors of
// Config.Close for values of this cache, and the panics that no other caller got:
// see [Config] and [Cache.GetOrCreateContext]. It keeps the first 100 of these. With a
// Config.OnRemove function, Close waits for that too.
//
// Close may be called again, to wait again and for the same errors. A create
// or Config.Close function that calls it waits for itself until ctx ends.
//
// A call that Close overtakes may still find and store values. They are
// removed and closed all the same, and no call that begins after Close has
// returned sees them.
//
// After Close, Get, All, Keys and Len find nothing, Delete and SetIfAbsent do
// nothing, and Set stores nothing: it closes the value, if there is a
// Config.Close function. Close panics if ctx is nil.
//
// Close is blocking: it waits for create functions, for Close functions, for
// leases, and for the mutex of one bucket at a time. It takes effect when
// callers no longer find the table; a creation that ended before it was removed
// there is not undone.
func (c *Cache[K, V]) Close(ctx context.Context) error { return c.shutDown(ctx, kind[K, V]{}) }

// shutDown is Close. Of is for a cache that has not been used yet.
func (c *core[K]) shutDown(ctx context.Context, of values[K]) error {
	if ctx == nil {
		panic("oncecache: Close called with a nil context")
	}
	r := c.detach(of)
	r.accounting.work.Or(uint64(closed))
	r.backlog.cancelHidden()
	renewals := r.renewals.Load()
	if renewals != nil {
		rr := renewals.root.Load()
		rr.backlog.cancelHidden()
		rr.drain()
	}
	r.later(r.drain())
	err := r.wait(ctx)
	if err != nil {
		pending := &PendingError{err: err}
		r.backlog.name(pending)
		if renewals != nil {
			renewals.root.Load().backlog.name(pending)
		}
		err = pending
	}
	return r.accounting.verdict(err)
}

// detach puts an empty root in place of the one that is to be closed, and
// returns that one. If several callers come at once, each puts its own there,
// and one is as good as another: nothing is ever stored in them.
func (c *core[K]) detach(of values[K]) *root[K] {
	r := c.sharedOf(of)
	if r.before != nil {
		return r.before
	}
	n := &root[K]{
		keys: r.keys, hash: r.hash, before: r, accounting: r.accounting, backlog: r.backlog, spares: r.spares, claims: r.claims,
		of: r.of, close: r.close, same: r.same, counts: r.counts, recorder: r.recorder, apart: r.apart, marked: r.marked, plain: r.plain,
		sieve: r.sieve, kept: r.kept, // for calls that have found an entry before, which is over
	}
	n.entries.Init(n.hash, 0)
	c.root.Store(n) // LP(Close)
	return r
}

// drain removes everything from the table, ends all flights, and returns the
// values that are to be closed.
func (r *root[K]) drain() (free []*entry[K]) {
	for found := range r.entries.All() {
		if e := r.entries.LoadAndDelete(r.at(found.key)); e != nil && r.endRemoved(e) {
			free = append(free, e)
		}
	}
	return free
}

// endRemoved ends e, which Close has taken out of the table, and reports whether its
// value is to be closed.
func (r *root[K]) endRemoved(e *entry[K]) (free bool) {
	p := e.joinable()
	if p.creating() {
		r.backlog.note(e, p.flight)
		if e.state.CompareAndSwap(p, newPhase(finalState[K]{err: ErrClosed, was: p})) { // LP(GetOrCreate): caught by Close
			r.accounting.finish(oneCreating)
			p.end()
			p.callOff(ErrClosed)
			return false
		}
	}
	return r.release(e, r.leave(e), whyClosed)
}

// retire follows the removal of e from the table by its caller, because of why: it closes
// the value, if that is to be closed, or leaves that to its users.
func (r *root[K]) retire(e *entry[K], why reason) { r.finish(e, r.leave(e), why) }

// finish is retire after leave, which has returned p. When leave has returned, it is decided
// whether e has expired.
func (r *root[K]) finish(e *entry[K], p *phase[K], why reason) {
	if r.release(e, p, why) {
		r.dispose(e)
	}
}

// leave is the first part of retire: it takes e off the counts. It returns the
// state of e if release needs it.
func (r *root[K]) leave(e *entry[K]) *phase[K] {
	if r.close == nil && r.kept == nil && r.sieve == nil {
		return nil
	}
	p := e.state.Load()
	r.left(p)
	return p
}

// release is the second part: no new user can take hold of the value of e. It reports
// whether the value is to be closed now.
func (r *root[K]) release(e *entry[K], p *phase[K], why reason) (free bool) {
	if r.close == nil || !p.ready() {
		return false
	}
	if p.place != nil && e.mark().isExpired() {
		why = whyExpired
	}
	return r.close.killUse(r, e, p.leases, why)
}

// dispose closes the value of e, which was pending, has left the table and has no
// users.
func (r *root[K]) dispose(e *entry[K]) { r.close.closeNow(r, e, false) }
