package oncecache

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Lease is the right to use a value: it is not closed before Release. Make it
// with [Cache.Acquire]. The zero value is a lease that was released.
//
// A Lease belongs to one goroutine at a time. It may be returned, stored, and
// handed on, as any value, but only one of its copies may be released. Releasing a
// second copy panics as soon as the count of users shows it: at once if no other
// caller holds the value, and otherwise at the latest when all others have released
// theirs.
type Lease[K comparable, V any] struct {
	box  *boxed[K, V]   // nil: released. A struct of at most four fields stays in registers
	held *atomics.Int64 // the word in which the lease is counted; nil: there is nothing to keep
	root *root[K]
	leak *leak // nil: without Config.OnLeak
}

// Acquire is [Cache.GetOrCreateContext] for values that are to be closed. With a
// Config.Close function, the value is not closed before the lease has been released,
// whatever is deleted, set or closed meanwhile; nor is Config.OnRemove told of it. A
// leased value is not removed because of MaxEntries, MaxWeight or IdleTimeout, whether
// there is a Close function or not. Without any of the five, a lease costs nothing and keeps
// nothing, but [Lease.Discard] works.
//
//	lease, err := engines.Acquire(ctx, url, open)
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//	use(lease.Value())
//
// If the value is removed while Acquire takes hold of it, Acquire looks
// again, and creates the next one if need be. So it may call create more than once,
// one call after the other. If a value is not kept, because Delete made the cache
// forget its creation or because the key holds a NaN, only the callers of that
// creation hold leases of it.
//
// Acquire is lock-free if k has a value, and otherwise blocking as
// GetOrCreateContext is. It takes effect when it finds an entry whose lease count it
// then joins, or as GetOrCreateContext does.
func (c *Cache[K, V]) Acquire(ctx context.Context, k K, create func(context.Context, K) (V, error)) (Lease[K, V], error) {
	if ctx == nil {
		panic("oncecache: Acquire called with a nil context")
	}
	if create == nil {
		panic("oncecache: Acquire called with a nil function")
	}
	r := c.shared()
	e, _ := r.find(k) // LP(Acquire): a hit, if the value can be held
	if e != nil {
		p := e.state.Load()
		if p != nil && p.leases != nil && p.place == nil { // as hold, where nothing is evicted
			if held := p.leases.acquire(); held != nil {
				return Lease[K, V]{box: boxOf[V](e), held: held, root: r, leak: r.track(k)}, nil
			}
			e = nil
		} else if p.ready() {
			if held, ok := r.hold(e, p); ok {
				return Lease[K, V]{box: boxOf[V](e), held: held, root: r, leak: r.track(k)}, nil
			}
			e = nil
		}
	}
	last, held, _, err := c.slowContext(ctx, k, e, creatorOf(create), r.counts)
	if err != nil {
		return Lease[K, V]{}, err
	}
	return Lease[K, V]{box: boxOf[V](last), held: held, root: r, leak: r.track(k)}, nil
}

// Value returns the value. It panics if the lease was released.
//
// Value is wait-free. It takes effect at once: the value of a lease never
// changes.
func (l *Lease[K, V]) Value() V {
	if l.box == nil {
		panic("oncecache: value of a lease that was released")
	}
	return l.box.value // LP(Value)
}

// Release ends the lease; if it has ended, nothing happens. The last user of a
// value that has left the cache calls Config.Close for it, on its goroutine, and
// Cache.Close returns the error.
//
// Release is wait-free; where it calls Config.Close, it is blocking for that and on
// the mutex of what is being closed. It takes effect when the caller is no longer
// counted among the users.
func (l *Lease[K, V]) Release() {
	if l.box == nil {
		return
	}
	e, held := &l.box.head, l.held
	l.box, l.held = nil, nil
	l.leak.released()
	l.leak = nil
	if held == nil {
		return // nothing is to be kept
	}
	if l.root.sieve != nil {
		l.root.wasHeld(e)
	}
	if n := held.Add(-1); n < 0 && e.isLast(held, n) { // LP(Release)
		l.root.close.closeNow(l.root, e, true)
	}
}

// Discard is Release of a value that is broken: if it is still the value of its
// key, it is removed, so that the next caller creates another. Several users may
// discard one value: it is removed once, and its replacement stays.
//
// Discard is blocking on the mutex of one bucket. It takes effect when the
// entry is removed, or when another one is found in its place.
func (l *Lease[K, V]) Discard() {
	if l.box != nil && l.root.remove(&l.box.head) { // LP(Discard)
		l.root.retire(&l.box.head, whyDiscarded)
	}
	l.Release()
}
