package oncecache

import (
	"context"
	"errors"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/goid"
	"github.com/latchfree/latchfree/internal/table"
)

// Refresh makes a new value for k from the old one, which all others use until the new one takes
// its place. If k has no value, Refresh is [Cache.GetOrCreateContext], and exists is false. If
// create returns [ErrNotModified] or the old value, that value stays, as if it were new. If create
// fails, the old value stays as it is. It is leased while create runs.
//
// Callers that refresh a key while create runs share that call. Contexts, panics, heirs and CreateTimeout work as
// in GetOrCreateContext. After [Cache.Set] they get the value that was set. After [Cache.Delete], [Cache.Clear],
// [CompareAndDelete] or [Lease.Discard] they get what create makes, which is not kept, and later callers start
// anew. If the old value expires, the call becomes the creation of the key, which later callers join.
//
// Refresh does not count as a use: the new value is as idle, and as near to eviction, as the old one was. A use of the
// old value at the moment when the new one takes its place may not count either. A nil create stands for Config.Renew,
// or else for Config.Create.
//
// Refresh is blocking: it waits for create or until ctx ends, and for the mutex of one bucket. It takes effect when
// the new value takes the place of the old one, and otherwise as GetOrCreateContext does.
func (c *Cache[K, V]) Refresh(ctx context.Context, k K, create func(ctx context.Context, k K, old V, exists bool) (V, error)) (v V, err error) {
	if ctx == nil {
		panic("oncecache: Refresh called with a nil context")
	}
	r := c.shared()
	if create == nil {
		if create = r.renewal(); create == nil {
			panic("oncecache: Refresh called with a nil function")
		}
	}
	for at := r.at(k); ; {
		e := r.current(r.entries.Load(at))
		if e == nil || !e.state.Load().ready() {
			if e, _, err = r.getOrCreate(ctx, at, e, func(ctx context.Context, k K) (none V, err error) {
				return create(ctx, k, none, false)
			}, oneCaller); err != nil {
				return v, err
			}
			return e.value, nil
		}
		if err = ctx.Err(); err != nil {
			return v, err
		}
		switch e, err = r.refresh(ctx, at, e, create); err {
		case nil:
			return e.value, nil
		case errAgain:
		default:
			return v, explain(err, k)
		}
	}
}

// refresh is one attempt at a new value in the place of e, which has one.
func (r *root[K, V]) refresh(ctx context.Context, at table.Hashed[K], e *entry[K, V], create refreshFunc[K, V]) (last *entry[K, V], err error) {
	who := callerOf(ctx, oneCaller)
	made := e.state.Load().making()
	if made == nil {
		n, own := r.newFlight(ctx, &entry[K, V]{key: at.Key}, oneCaller)
		if who.ctx == nil {
			n.state.flight.by = goid.Token()
		}
		if r.beginRefresh(n, at, e) {
			last, _, err = n.start(&who, n.refreshed(own, create))
			return last, err
		}
	}
	if made == nil || !made.state.Load().creating() {
		if tally(r.accounting.work.Load()).closed() {
			return nil, ErrClosed // rather than look again until Close has taken e out
		}
		r.helpReplace(e, made)
		return nil, errAgain // the function may have returned before this call
	}
	last, _, err = r.outcome(made, &who)
	if last == made {
		r.helpReplace(e, made)
	}
	return last, err
}

// beginRefresh makes n, which others have not seen, the creation that is to replace e. It fails if another
// Refresh has come first, e has lost the key, or the cache is closed.
//
// It publishes the creation in the state of e, and then looks whether e is still the key's. A call that
// takes e out of the table looks into its state afterwards. So one of them ends the creation.
func (r *root[K, V]) beginRefresh(n *creation[K, V], at table.Hashed[K], e *entry[K, V]) bool {
	f := n.state.flight
	var ok bool
	if f.claim, ok = r.claimFor(e); !ok {
		return false
	}
	n.old = e
	n.entry.state.Store(n.state)
	f.function.aside.Store(true)
	r.accounting.aside.Add(1)
	closed := r.accounting.begin(oneCreating | onePending)
	for {
		s := e.state.Load()
		if s.making() != nil {
			r.land(f)
			r.unclaim(f.claim, at.Key)
			r.accounting.finish(oneCreating | onePending)
			return false
		}
		if e.state.CompareAndSwap(s, s.with(n.entry)) {
			break
		}
	}
	switch {
	case closed:
		n.settle(&result{err: ErrClosed})
	case r.entries.Load(at) != e:
		n.settle(&result{err: errAgain})
	default:
		return true
	}
	return false
}

// with returns the state of an entry that has a value, in state s, with another next.
func (s *state[K, V]) with(next *entry[K, V]) *state[K, V] {
	var now state[K, V]
	if s != nil {
		now = *s
	}
	if now.next = next; now == (state[K, V]{}) {
		return nil
	}
	made := now // so that now stays on the stack
	return &made
}

// detach takes n, whose creation has failed, off the state of e, which it was to replace.
func (r *root[K, V]) detach(e, n *entry[K, V]) {
	for {
		s := e.state.Load()
		if s.making() != n || e.state.CompareAndSwap(s, s.with(nil)) {
			return
		}
	}
}

// refreshed returns the function that makes the value of n from the old one, which it holds meanwhile.
func (n *creation[K, V]) refreshed(ctx context.Context, create refreshFunc[K, V]) func(*entry[K, V]) error {
	return func(e *entry[K, V]) (err error) {
		r, old := n.root, n.old
		held, ok := r.hold(old, old.state.Load(), false)
		if !ok {
			return errAgain
		}
		defer r.giveUp(old, held)
		if e.value, err = create(ctx, e.key, old.value, true); err == nil && (!r.owns || !r.same(old.value, e.value)) {
			return nil
		}
		if n.unchanged = err == nil || errors.Is(err, ErrNotModified); !n.unchanged {
			return err
		}
		if r.bounded {
			r.expiry(old, &n.prolonged)
		}
		return ErrNotModified
	}
}

// stays leaves the old value of a Refresh as if it was new. It fails if that has left.
func (n *creation[K, V]) stays() bool {
	r, old := n.root, n.old
	if !r.bounded {
		return r.entries.Load(r.at(old.key)) == old // LP(Refresh): not modified
	}
	return r.order.prolong(r, old.state.Load().node, n.prolonged) // LP(Refresh): likewise
}

// replace puts e, which a Refresh has made, in the place of old, unless another call was faster.
// All calls that know of e's value try, so that none returns before it is there.
func (r *root[K, V]) replace(old, e *entry[K, V]) bool {
	if r.bounded {
		return r.order.succeed(r, e.state.Load().node, old.state.Load().node) // LP(Refresh)
	}
	return r.entries.CompareAndSwap(r.at(old.key), old, e) // LP(Refresh)
}

// helpReplace is replace by another call than the creator's, if made has a value, and detach if
// made has ended otherwise. Made may be nil.
func (r *root[K, V]) helpReplace(old, made *entry[K, V]) {
	switch {
	case made == nil:
	case !made.state.Load().ready():
		r.detach(old, made)
	case r.replace(old, made):
		r.letGo(old, r.uncount(old), ReasonReplaced)
	}
}

// endRefresh ends what was to replace an entry that has left the table in state s: in the value
// of to, or, if that is nil, as Delete ends a creation. It calls no function of the user.
func (r *root[K, V]) endRefresh(s *state[K, V], to *entry[K, V]) {
	n := s.making()
	if n == nil {
		return
	}
	var ready bool
	if to != nil {
		ready = r.overtake(n, to)
	} else {
		ready = r.forget(n)
		r.stopRenewing(n)
	}
	if ready { // and it cannot come to the table any more
		r.later(r.release(n, r.uncount(n), ReasonDiscarded))
	}
}

// stopRenewing says that the old value, which n was to replace, has gone: if n is made in the
// background, that is no longer a caller of its own.
func (r *root[K, V]) stopRenewing(n *entry[K, V]) {
	if s := n.state.Load(); s != nil && s.flight != nil {
		s.flight.leave(oneCaller | renewing)
	}
}

// renewSoon renews the value of e in the background. The caller has taken due off.
func (r *root[K, V]) renewSoon(e *entry[K, V]) { atomics.Go(func() { r.renew(e) }) }

// renew renews the value of e, if it is still its key's and no Refresh does so. If that fails,
// the value will be due again.
func (r *root[K, V]) renew(e *entry[K, V]) {
	defer r.order.renewLater(r, e.state.Load().node) // even if Renew exits
	n, own := r.newFlight(context.Background(), &entry[K, V]{key: e.key}, oneCaller|renewing)
	n.state.flight.function.alone.Store(int64(goid.Token()))
	n.thrown = new(PanicError)
	if r.beginRefresh(n, r.at(e.key), e) {
		r.accounting.renewals.Add(1)
		n.run(n.refreshed(own, r.renewal()))
	}
}

// renewal returns the function that renews values, or nil.
func (r *root[K, V]) renewal() refreshFunc[K, V] {
	renew, create := r.config.Renew, r.config.Create
	switch {
	case renew != nil:
		return func(ctx context.Context, k K, old V, exists bool) (V, error) {
			if !exists && create != nil {
				return create(ctx, k)
			}
			return renew(ctx, k, old)
		}
	case create != nil:
		return func(ctx context.Context, k K, _ V, _ bool) (V, error) { return create(ctx, k) }
	}
	return nil
}
