package oncecache

import (
	"context"
	"errors"

	"github.com/latchfree/latchfree/internal/table"
)

// Refresh makes a new value for k. While create runs, everyone else goes on
// with the old one; then the new one takes its place, and the old one is closed
// when its leases have been released, if there is a Config.Close function. If k
// has no value, Refresh is [Cache.GetOrCreateContext].
//
// Callers that refresh a key while create runs share that call. Contexts, panics,
// heirs, Config.CreateTimeout and Config.KeepCreating work as in GetOrCreateContext.
// If create fails, the old value stays. If create returns the old value, or
// [ErrNotModified], the old value stays and Refresh returns it.
//
// If [Cache.Set], [Cache.Delete] or [Cache.Clear] is called while create runs, the
// new value is not kept, and a later Refresh begins anew. The callers get the value
// that Set or another creation has put there or, if there is none, the value that
// create made; with a Config.Close function that is closed at once, as after Delete.
//
// If the old value is removed in another way while create runs, a caller that asks
// for the key does not start a second creation: all callers get the value that
// create makes, and it is kept. If no caller waits for the key, it is not kept. If
// Config.CreateTimeout or Close ends the call at the moment when the value is
// replaced, the callers may get the error, and the new value stays.
//
// Refresh does not count as a use: the new value is as idle, and as near to
// eviction, as the old one was. Close functions run on the goroutine that ran
// create, after the callers have their result.
//
// Refresh is blocking: it waits for create or until ctx ends, and for the mutex
// of one bucket. It takes effect when the new value takes the place of the old
// one, and otherwise as GetOrCreateContext does.
func (c *Cache[K, V]) Refresh(ctx context.Context, k K, create func(context.Context, K) (V, error)) (v V, err error) {
	if create == nil {
		panic("oncecache: Refresh called with a nil function")
	}
	c.shared()
	e, err := c.refresh(ctx, k, creatorOf(create))
	if err != nil {
		return v, err
	}
	return *valueOf[V](e), nil
}

// Reload is [Cache.Refresh] with a function that gets the old value, to ask the source
// what has changed since. If nothing has, create returns [ErrNotModified]. The old value
// is leased while create runs; if it is removed meanwhile, it is closed afterwards on a
// goroutine of the cache. If k has no value, create gets the zero value, and exists is
// false.
//
// Reload is blocking, and takes effect as Refresh does.
func (c *Cache[K, V]) Reload(ctx context.Context, k K, create func(ctx context.Context, k K, old V, exists bool) (V, error)) (v V, err error) {
	if create == nil {
		panic("oncecache: Reload called with a nil function")
	}
	e, err := c.refresh(ctx, k, creatorOf(reloading(c.shared(), create))) // LP(Reload)
	if err != nil {
		return v, err
	}
	return *valueOf[V](e), nil
}

// reloading returns a function for Refresh that calls create with the old value, which it
// holds meanwhile.
func reloading[K comparable, V any](r *root[K], create func(ctx context.Context, k K, old V, exists bool) (V, error)) func(context.Context, K) (V, error) {
	return func(ctx context.Context, k K) (v V, err error) {
		base := baseOf[K](ctx)
		if base == nil {
			return create(ctx, k, v, false)
		}
		held, ok := r.holdFor(base, base.state.Load(), (*mark).keepUnused) // to reload is no use
		if !ok {
			return v, errNoBase
		}
		defer r.giveUp(base, held)
		return create(ctx, k, *valueOf[V](base), true)
	}
}

// baseOf returns the entry that the function whose context is ctx is to replace, or nil
// if the key had no value.
func baseOf[K comparable](ctx context.Context) *entry[K] {
	if base := partOf(ctx).ext.base.Load(); base != nil {
		return (*base).(*entry[K])
	}
	return nil
}

// refresh is Refresh. It returns the entry whose value its caller gets.
func (c *core[K]) refresh(ctx context.Context, k K, create creator) (*entry[K], error) {
	if ctx == nil {
		panic("oncecache: Refresh or Reload called with a nil context")
	}
	r := c.root.Load()
	for at := r.at(k); ; {
		e := r.current(r.entries.Load(at))
		if r.before != nil || !e.has() {
			return c.getOrCreateContext(ctx, at, create)
		}
		r.overtakeOther(at, e)
		last, err := r.renewing().getOrCreateContext(ctx, at, create)
		if err == errNoBase {
			continue
		}
		if err != nil {
			return nil, err
		}
		got := valueOf[renewal[K]](last)
		if got.gone {
			continue
		}
		if got.ended && c.root.Load() != r {
			return nil, ErrClosed // Close is about to say so
		}
		if got.entry != e || got.stays {
			return got.result, nil
		}
		// The function had returned before this call, which has found its value
		// in the table. The renewal has ended now.
	}
}

// getOrCreateContext is GetOrCreateContext that returns an entry.
func (c *core[K]) getOrCreateContext(ctx context.Context, k table.Hashed[K], create creator) (*entry[K], error) {
	r := c.root.Load()
	e := r.entries.Load(k)
	if e != nil && (e.inUse(r.marked) || r.marked && e.usable()) {
		return e, nil
	}
	last, _, _, err := c.slowContext(ctx, k.Key, e, create, oneCaller)
	return last, err
}

// overtakeOther ends the Refresh of k that is to replace another entry than e,
// which k has, so that no caller joins a Refresh whose value will not be kept.
func (r *root[K]) overtakeOther(k table.Hashed[K], e *entry[K]) {
	renewals := r.renewals.Load()
	if renewals == nil {
		return
	}
	in := renewals.root.Load()
	old, p := in.underWay(k)
	if old == nil {
		return
	}
	base := p.ext.base.Load()
	if base == nil || *base == any(e) || r.entries.Load(k) != e {
		return
	}
	if in.note(old); in.remove(old) {
		in.removed(old)
	}
}

// renewal is one call of the function of Refresh, and its outcome. It is the value of an
// entry in root.renewals.
type renewal[K comparable] struct {
	root *root[K]
	base *entry[K] // which was to be replaced
	seen any       // base, as the flight shows it

	made   *entry[K] // for the value that the function makes; no one else has seen it
	result *entry[K] // which has the value that the callers get, and need not be the key's
	entry  *entry[K] // which is the key's; nil: it was overtaken
	stays  bool      // entry is the old one
	ended  bool      // it was too late for the value to be kept
	gone   bool      // there is no value: it was to be the old one, and that has gone
	heavy  bool      // the value is too heavy: it has ended the old one, and is not kept

	// over is the entry that the renewal has taken from the table, or one that never was
	// there, whose value is to be closed.
	over *entry[K]
}

// find sets n.base to the entry that f, which is in the table of renewals, is to
// replace, or to nil if there is none: then a creation is in its place, or will be,
// which has not seen f, or waits for its end.
func (n *renewal[K]) find(k table.Hashed[K], f *extended) {
	for {
		e := n.root.entries.Load(k)
		if !e.has() {
			n.base = nil
			return
		}
		if n.base == nil {
			n.base, n.seen = e, e
			f.base.Store(&n.seen)
		} else {
			n.base = e
			again := any(e) // a value that was published never changes
			f.base.Store(&again)
		}
		if n.root.entries.Load(k) == e {
			return
		}
	}
}

// renewing has the functions for values of root.renewals, where root is the one that has
// these. Make is renewal.make: a method that calls it would be in every
// program, because the linker keeps makeValue.
type renewing[K comparable] struct {
	root *root[K]
	make func(n *renewal[K], ctx context.Context, k table.Hashed[K], create creator) error
}

func (*renewing[K]) freshEntry(k K) *entry[K] { return freshOf[K, renewal[K]](k) }

func (*renewing[K]) copyValue(to, from *entry[K]) {
	*valueOf[renewal[K]](to) = *valueOf[renewal[K]](from)
}

// makeValue calls create, which makes a value of root.
func (of *renewing[K]) makeValue(ctx context.Context, create creator, e *entry[K]) error {
	n := valueOf[renewal[K]](e)
	n.root = of.root
	return of.make(n, ctx, of.root.at(e.key), create)
}

// make is the rest of that.
func (n *renewal[K]) make(ctx context.Context, k table.Hashed[K], create creator) error {
	r, part := n.root, partOf(ctx)
	renewals := r.renewing().root.Load()
	n.find(k, part.ext)
	base := n.base
	if base == nil {
		return errNoBase
	}
	made := false
	if r.close != nil {
		r.own(k.Key) // before, because the function may have to be alone
		defer func() {
			if !made {
				r.unown(k.Key)
			}
		}()
	}
	n.made = r.of.freshEntry(k.Key)
	err := r.of.makeValue(ctx, create, n.made)
	same := errors.Is(err, ErrNotModified) || err == nil && r.close != nil && r.same(base, n.made)
	if err != nil && !same {
		return err
	}
	lims := limits{}
	switch {
	case !same:
		lims = r.limitsOf(n.made, true)
	case r.expires:
		lims.until = r.sieve.lastsAgain(r, base)
	}
	made = !same
	switch now := r.entries.Load(k); {
	case made:
		n.result = n.made
		n.replace(renewals, k, part, lims)
	case now == base && r.prolongs(base, lims.until):
		n.result, n.entry, n.stays = base, base, true
	default: // the old value has gone
		n.result, n.gone = now, !now.has()
	}
	if own := renewals.createdBy(k, part); own != nil {
		renewals.entries.CompareAndDelete(k, own) // before the result is known, so that a caller that knows it starts anew
	} else {
		n.ended = true
	}
	return nil
}

// replace puts the value in the place of base, which the key had when Refresh began
// to make it, or of a creation that waits for that. If others have been faster, or
// have ended f, the value is closed when f has ended.
func (n *renewal[K]) replace(renewals *root[K], k table.Hashed[K], f *flight, lims limits) {
	r, own := n.root, n.made
	if n.heavy = lims.weight == tooHeavy; n.heavy {
		r.makePassing(own)
	} else {
		r.makeReady(own, lims)
	}
	for {
		e := r.entries.Load(k) // before f is looked for: an entry that comes after Delete does not wait for f
		ready := e != nil && e.state.Load().ready()
		if e == nil || renewals.createdBy(k, f) == nil || ready && e != n.base || e.failed() {
			break
		}
		if r.note(e); !n.heavy && !r.entries.CompareAndSwap(k, e, own) || n.heavy && !r.remove(e) { // LP(Refresh)
			continue
		}
		if !ready {
			r.replaced(e, own)
		}
		n.entry, n.over = own, e
		return
	}
	if r.close != nil {
		n.over = r.copied(own) // no longer own, which was to be the key's
	}
	if other := r.entries.Load(k); other.has() {
		n.result = other
	}
}

// follow leaves the order and closes values, when the flight has ended.
func (n *renewal[K]) follow() {
	switch {
	case n.over == nil: // nothing
	case n.entry != nil:
		if n.heavy {
			defer n.root.dropPassing(n.entry) // though a Close function may end the goroutine
		}
		n.root.succeeded(n.over, n.entry)
	default:
		n.root.dispose(n.over)
	}
}

// succeeded follows the replacement of e by n, which Refresh has made.
func (r *root[K]) succeeded(e, n *entry[K]) {
	p, now := e.state.Load(), n.state.Load()
	var out []*sieveNode[K]
	took := false
	if p != nil && p.place != nil && now != nil && now.place != nil {
		out, took = r.sieve.leavePlace(r, now.place, p.place)
	}
	left := r.leave(e)
	if took {
		r.evictAll(out)
	} else {
		r.settled(n)
	}
	if r.release(e, left, whyReplaced) {
		r.dispose(e)
	}
}

// createdBy returns the entry of k if f, and no later flight, creates it.
func (r *root[K]) createdBy(k table.Hashed[K], f *flight) *entry[K] {
	if e, p := r.underWay(k); e != nil && p.flight == f {
		return e
	}
	return nil
}

// renewing returns the cache in which the keys are created that Refresh makes
// again. It shares the accounting of r, and nothing is kept there.
func (r *root[K]) renewing() *core[K] {
	if c := r.renewals.Load(); c != nil {
		return c
	}
	n := newRoot[K](&renewing[K]{r, (*renewal[K]).make}, r.keys, &settings[K]{keepCreating: r.extra == kept, createTimeout: r.createTimeout, timed: r.timed, renews: true})
	n.accounting, n.recorder, n.renews = r.accounting, r.recorder, true
	n.awaited = awaitRenewal[K]
	n.follows = func(e *entry[K]) { valueOf[renewal[K]](e).follow() }
	c := new(core[K])
	c.root.Store(n)
	return r.renewals.Install(c)
}
