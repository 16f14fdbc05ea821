package oncecache

import (
	"context"
)

// Refresh makes a new value for k. While create runs, everyone else goes on
// with the old one; then the new one takes its place, and the old one is closed
// when its leases have been released, if there is a Config.Close function. If k
// has no value, Refresh is [Cache.GetOrCreateContext].
//
// Callers who refresh a key while create runs share that call, as if they had
// called GetOrCreateContext for a key of its own: what is said there about
// contexts, panics and heirs, and in [Config] about CreateTimeout and
// KeepCreating, holds here too. If create fails, the old value stays.
//
// If the value that create is to replace has been removed or replaced when
// create returns, what it made is not kept: the callers get what [Cache.Set] or
// another creation has put there or, if nothing is there, what create made; with
// a Config.Close function that is closed at once, as after [Cache.Delete]. If it
// is replaced at the very moment when Config.CreateTimeout or Close ends the
// call, the callers may get the error of that and the new value stays.
//
// Close functions run when the callers have been told, on the goroutine that
// ran create.
//
// Refresh is blocking: it waits for create or until ctx ends, and for the mutex
// of one bucket. It takes effect when the new value takes the place of the old
// one, and otherwise as GetOrCreateContext does.
func (c *Cache[K, V]) Refresh(ctx context.Context, k K, create func(context.Context, K) (V, error)) (v V, err error) {
	if ctx == nil {
		panic("oncecache: nil context")
	}
	if create == nil {
		panic("oncecache: nil create function")
	}
	r := c.shared()
	e := r.find(k)
	if r.before != nil || e == nil || !e.state.Load().ready() {
		return c.GetOrCreateContext(ctx, k, create)
	}
	renewals := r.renewing()
	for {
		made, err := renewals.GetOrCreateContext(ctx, k, func(ctx context.Context, k K) (any, error) {
			return r.makeAnew(ctx, k, create)
		})
		if err != nil {
			return v, err
		}
		got := made.(renewal[K, V])
		if got.ended && c.root.Load() != r {
			return v, ErrClosed // Close is about to say so
		}
		if got.entry != e {
			return got.value, nil
		}
		// The function had returned before this call, which has found its value
		// in the table. The renewal has ended now.
	}
}

// renewal is what the callers of Refresh get.
type renewal[K comparable, V any] struct {
	value V
	entry *entry[K, V] // in which the renewal has put it; nil: it was overtaken
	ended bool         // it was too late for the value to be kept
}

// makeAnew is the function of a renewal.
func (r *root[K, V]) makeAnew(ctx context.Context, k K, create func(context.Context, K) (V, error)) (any, error) {
	renewals := r.renewing().shared()
	e := r.find(k)
	if e != nil && !e.state.Load().ready() {
		e = nil // deleted meanwhile, and asked for again
	}
	v, err := create(ctx, k)
	if err != nil {
		return nil, err
	}
	part := partOf(ctx)
	own := renewals.createdBy(k, part)
	if own == nil { // a timeout has ended the renewal, or Close
		if r.close != nil {
			r.books.begin(onePending)
			part.then = func() { r.dispose(k, v) }
		}
		return renewal[K, V]{value: v, ended: true}, nil
	}
	var got renewal[K, V]
	got, part.then = r.renew(k, e, v)
	renewals.remove(own) // before this is known, so that whoever knows of it starts anew
	return got, nil
}

// renew puts v in the place of the value of e, which the key had when Refresh
// began to make v, unless that has been replaced or removed, and returns what
// the callers of Refresh get. Then runs the Close functions that follow.
func (r *root[K, V]) renew(k K, e *entry[K, V], v V) (got renewal[K, V], then func()) {
	if r.close != nil {
		r.books.begin(onePending)
	}
	n := r.newEntry(k, v)
	if e != nil && r.entries.CompareAndSwap(r.at(k), e, n) { // LP(Refresh)
		return renewal[K, V]{value: v, entry: n}, func() {
			defer r.release(e, r.leave(e)) // as Set does
			r.settled(n)
		}
	}
	got.value = v
	if now := r.find(k); now != nil {
		if other, ok := now.get(); ok {
			got.value = other
		}
	}
	if r.close == nil {
		return got, nil
	}
	return got, func() { r.dispose(k, n.value) }
}

// createdBy returns the entry of k if f, and no later flight, creates it.
func (r *root[K, V]) createdBy(k K, f *flight) *entry[K, V] {
	if e := r.find(k); e != nil {
		if p := e.state.Load(); p.creating() && &p.flight == f {
			return e
		}
	}
	return nil
}

// renewing returns the cache in which the keys are created that Refresh makes
// again. It shares the books of r, and nothing is kept there.
func (r *root[K, V]) renewing() *Cache[K, any] {
	if c := r.renewals.Load(); c != nil {
		return c
	}
	n := newRoot(Config[K, any]{KeepCreating: r.extra == kept, CreateTimeout: r.createTimeout})
	n.books = r.books
	c := new(Cache[K, any])
	c.root.Store(n)
	r.renewals.CompareAndSwap(nil, c)
	return r.renewals.Load()
}
