package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// With CloseBeforeCreate, a key that has lost its value is not free while something is left of it. An entry
// that is closing holds its place in the table, and creations wait until the last remnant takes that out.

// claim counts what is left of a key: its create functions that run, and its values that are not closed,
// whether the key has them or had them. All entries that follow one another in the key's place share it.
type claim struct {
	// count is gone when nothing is left: then the key's place is free, or about to be.
	count atomics.Int64

	// free wakes the calls that wait: by the one that makes count gone, that gives the key a value or
	// hides a function, and by Close.
	free atomics.Waker
}

const gone = -1

// newClaim returns the claim of a value or a creation, whose key has nothing else left.
func newClaim() *claim {
	c := new(claim)
	c.count.Store(1)
	return c
}

// isGone reports whether nothing is left of the key.
func (c *claim) isGone() bool { return c == nil || c.count.Load() == gone }

// join counts one more, unless nothing is left.
func (c *claim) join() bool {
	for {
		n := c.count.Load()
		if n == gone {
			return false
		}
		if c.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// unclaim takes off what has been closed, or a function that has made no value. The last one
// makes the key free. C may be nil.
func (r *root[K, V]) unclaim(c *claim, k K) {
	if c == nil || c.count.Add(-1) != 0 || !c.count.CompareAndSwap(0, gone) {
		return
	}
	at := r.at(k)
	if e := r.entries.Load(at); e != nil {
		if s := e.state.Load(); s.closing() && s.claim() == c {
			r.drop(e)
		}
	}
	c.free.Wake()
}

// claimFor returns the claim of a value that is to take the place of e, which may be nil, and
// counts it there. It fails if the place of e is free, or about to be.
func (r *root[K, V]) claimFor(e *entry[K, V]) (c *claim, ok bool) {
	if !r.config.CloseBeforeCreate {
		return nil, true
	}
	if e != nil {
		c = e.state.Load().claim()
	}
	if c == nil { // nothing, or a kept error
		return newClaim(), true
	}
	return c, c.join()
}

// awaitFree waits until nothing is left of the key of e, which is closing, and returns errAgain then.
func (r *root[K, V]) awaitFree(e *entry[K, V], who *caller) error {
	ctx := who.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if d := r.config.CreateTimeout; d > 0 {
		bounded, cancel := atomics.WithTimeoutCause(ctx, d, ErrCreateTimeout)
		defer cancel()
		ctx = bounded
	}
	for {
		if err := r.awaitWake(ctx, e, who); err != errAgain {
			return err
		}
		if e = r.current(r.entries.Load(r.at(e.key))); e == nil || !e.state.Load().closing() {
			return errAgain
		}
	}
}

// awaitWake waits until e, which is closing, may no longer have its key, and returns errAgain then. Ctx is
// that of the caller, or one that ends sooner.
func (r *root[K, V]) awaitWake(ctx context.Context, e *entry[K, V], who *caller) error {
	c := e.state.Load().end.claim
	free := c.free.Event()
	if tally(r.accounting.work.Load()).closed() {
		return ErrClosed // LP(GetOrCreate): closed
	}
	if c.isGone() || r.entries.Load(r.at(e.key)) != e {
		return errAgain
	}
	if part := who.part; part != nil && part.claim == c {
		return errRecursion
	}
	for _, f := range r.backlog.flights(c) { // whoever hides another one wakes this call
		if f.runsHere() {
			return errRecursion
		}
		if who.part == nil {
			continue
		}
		d, err := who.part.depend(f, e.key, calls)
		if err != nil {
			return err
		}
		defer d.end()
	}
	if free.WaitContext(ctx) == nil {
		return errAgain
	}
	if who.ctx != nil && who.ctx.Err() != nil {
		return who.ctx.Err() // LP(GetOrCreateContext): left
	}
	return ErrCreateTimeout
}
