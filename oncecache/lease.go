package oncecache

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// Lease is the right to use a value: it is not closed before Release. [Cache.Acquire] returns it. The
// zero value is a released lease.
//
// A Lease belongs to one goroutine at a time. Only one copy of it may be released: a second one panics, at the
// latest when all others have released theirs.
type Lease[K comparable, V any] struct {
	entry *entry[K, V]   // nil: released. A struct of at most four fields stays in registers
	held  *atomics.Int64 // the word in which the lease is counted; nil: nothing depends on it
	root  *root[K, V]
	leak  *leak // nil: without OnLeak
}

// Acquire is [Cache.GetOrCreateContext] for values that are to be closed. Until the lease is
// released, the value is not closed and not passed to OnRemove, whatever is deleted, set or closed
// meanwhile; and MaxEntries, MaxWeight and IdleTimeout do not remove it. In a cache without any of
// these settings a lease costs nothing.
//
// If the value is removed while Acquire is acquiring it, Acquire starts over, and may call create
// again. A nil create stands for Config.Create.
//
// Acquire is lock-free if k has a value, and otherwise blocking as GetOrCreateContext is. It takes effect
// when it finds an entry whose count of leases it then joins, or as GetOrCreateContext does.
func (c *Cache[K, V]) Acquire(ctx context.Context, k K, create func(context.Context, K) (V, error)) (Lease[K, V], error) {
	if ctx == nil {
		panic("oncecache: Acquire called with a nil context")
	}
	r := c.shared()
	if create == nil {
		if create = r.config.Create; create == nil {
			panic("oncecache: Acquire called with a nil function")
		}
	}
	e, hash := r.find(k)
	if e != nil { // LP(Acquire): a hit, if the value can be held
		if s := e.state.Load(); s.ready() {
			if held, ok := r.hold(e, s, true); ok {
				return Lease[K, V]{e, held, r, r.track(k)}, nil
			}
			e = nil
		}
	}
	last, held, err := r.getOrCreate(ctx, table.Hashed[K]{Hash: hash, Key: k}, e, create, r.counts)
	if err != nil {
		return Lease[K, V]{}, err
	}
	return Lease[K, V]{last, held, r, r.track(k)}, nil
}

// Value returns the value. It panics if the lease was released.
//
// Value is wait-free. It takes effect at once: the value of a lease never changes.
func (l *Lease[K, V]) Value() V {
	if l.entry == nil {
		panic("oncecache: Value called on a released lease")
	}
	return l.entry.value // LP(Value)
}

// Release ends the lease; if it has ended, nothing happens. The last user of a value that has left the cache
// calls Config.Close for it.
//
// Release is wait-free; where it calls Config.Close, it is blocking for that and on the mutex of what is
// being closed. It takes effect when the caller is no longer counted among the users.
func (l *Lease[K, V]) Release() {
	e, held := l.entry, l.held
	if e == nil {
		return
	}
	l.entry, l.held = nil, nil
	l.leak.released()
	l.leak = nil
	if held == nil {
		return
	}
	if l.root.bounded {
		e.mark.held() // before the count, in the opposite order of order.check
	}
	if l.root.unhold(e, held) { // LP(Release)
		l.root.dispose(e)
	}
}

// Discard releases a broken value: if it is still the value of its key, it is removed, once however
// many users discard it, and the next caller creates another. A Refresh ends as after Delete.
//
// Discard is blocking on the mutex of one bucket. It takes effect when the entry is removed, or when
// another one is found in its place.
func (l *Lease[K, V]) Discard() {
	if l.entry != nil && l.root.vacate(l.entry) { // LP(Discard)
		l.root.retire(l.entry, ReasonDiscarded)
	}
	l.Release()
}

// hold counts a user of the value of e, whose state is s, and returns the word to take it off
// from; nil if nothing depends on that. It fails if the entry has left the table, or is about to.
func (r *root[K, V]) hold(e *entry[K, V], s *state[K, V], isUse bool) (held *atomics.Int64, ok bool) {
	if s == nil || s.users == nil {
		return nil, true
	}
	if held = s.users.acquire(); held == nil {
		return nil, false
	}
	if s.node == nil {
		return held, true
	}
	ok, renew := e.mark.keep(isUse)
	if !ok {
		r.giveUp(e, held)
		return nil, false
	}
	if renew {
		r.renewSoon(e)
	}
	return held, true
}

// lease is hold for a caller that has waited for the outcome of e, if it wants a lease.
func (r *root[K, V]) lease(e *entry[K, V], s *state[K, V], who *caller) (held *atomics.Int64, err error) {
	switch {
	case s == nil:
		return nil, nil
	case who.joined != nil:
		return &s.users.base, nil // the creator has counted it
	case who.gone:
		return nil, errAgain
	}
	held, ok := r.hold(e, s, true)
	if !ok {
		return nil, errAgain
	}
	return held, nil
}

// unhold takes off a user of the value of e that is counted in held, and reports whether the
// value is to be closed now.
func (r *root[K, V]) unhold(e *entry[K, V], held *atomics.Int64) (free bool) {
	n := held.Add(-1)
	return n < 0 && e.state.Load().users.last(held, n)
}

// giveUp is unhold for a user that was counted in vain, or nil. If the value is to be closed
// then, a goroutine of the cache does that.
func (r *root[K, V]) giveUp(e *entry[K, V], held *atomics.Int64) {
	if held != nil && r.unhold(e, held) {
		r.later(e)
	}
}

// leases counts the users of a value, exactly, and tells one of them that it was the last. While
// the entry is in the table, its users count themselves in words that are far apart, whose sum is
// not known. When the entry has left the table, its remover kills the words and gathers their
// counts in one, which the users that are left count down.
//
// Based on percpu_ref of the Linux kernel.
type leases struct {
	// base counts users until two of them collide; see stripes.
	//
	//	live   n ≥ 0       +1 by acquire (CAS), −1 by release
	//	dead   near dead   from the kill on; additions no longer count
	base atomics.Int64

	// stripes is nil until two users collide on base, then points to words like base, or to
	// none if the kill came first. It changes once.
	stripes atomics.Pointer[[]stripe]

	// central is 0 until the kill; then gathering plus the counts gathered so far, less the
	// releases since; when all are gathered, the number of users left.
	central atomics.Int64

	// reason says why the entry has left the table. Its remover writes it before the kill, and
	// the call that closes the value reads it. Zero: the value never was its key's.
	reason Reason
	place  int32 // the index of the value in backlog.values, plus one, under backlog.mu; 0: it is not there

	claim *claim // in which the value is counted, with CloseBeforeCreate; never changes
}

// stripe is a word like leases.base, on a cache line of its own.
type stripe struct {
	users atomics.Int64
	_     [atomics.CacheLineSize - 8]byte
}

const (
	// dead is the value of a killed word: so far below zero that neither releases nor failed
	// acquisitions bring it near zero.
	dead = -1 << 62

	// gathering keeps central above zero while the kill is under way: more than there can be users.
	gathering = 1 << 61
)

// looseState returns the state of an entry that is in no table, with so many users.
func looseState[K comparable, V any](users int64, claim *claim) *state[K, V] {
	both := new(struct {
		state state[K, V]
		users leases
	})
	both.state.users = &both.users
	both.users.base.Store(dead) // so that no user makes stripes
	both.users.central.Store(users)
	both.users.claim = claim
	return &both.state
}

// acquire counts the caller and returns the word to release, or nil if the words are dead: then
// the entry has left the table.
func (l *leases) acquire() (held *atomics.Int64) {
	if s := l.stripes.Load(); s != nil {
		return acquireStripe(*s)
	}
	n := l.base.Load()
	if n < 0 {
		return nil
	}
	if l.base.CompareAndSwap(n, n+1) {
		return &l.base
	}
	// Another user came or went, or the kill.
	s := make([]stripe, atomics.Stripes())
	return acquireStripe(*l.stripes.Install(&s))
}

// acquireStripe is acquire on the caller's stripe.
func acquireStripe(s []stripe) (held *atomics.Int64) {
	if len(s) == 0 {
		return nil
	}
	held = &s[atomics.Stripe(len(s))].users
	if held.Add(1) < 0 {
		return nil
	}
	return held
}

// last completes the release of a user that was counted in held, which shows n without it, less
// than zero. It reports whether this was the last user of an entry that has left the table.
func (l *leases) last(held *atomics.Int64, n int64) bool {
	if n < dead/2 {
		n = l.central.Add(-1)
	} else {
		held.Add(1) // so that the kill gathers the count of the others
	}
	if n < 0 {
		panic("oncecache: lease released twice")
	}
	return n == 0
}

// count returns the number of users, but for those that come or go meanwhile, or whose words are dead.
func (l *leases) count() int64 {
	users := max(0, l.base.Load())
	if s := l.stripes.Load(); s != nil {
		for i := range *s {
			users += max(0, (*s)[i].users.Load())
		}
	}
	return users
}

// kill makes acquire fail from now on, and reports whether there are no users left. It is called
// once, by the caller that removed the entry.
func (l *leases) kill() (last bool) {
	l.central.Add(gathering)
	users := l.base.Swap(dead)
	if l.stripes.Load() == nil {
		l.stripes.Install(new([]stripe)) // another's if two users have collided
	}
	s := *l.stripes.Load()
	for i := range s {
		users += s[i].users.Swap(dead)
	}
	return l.central.Add(users-gathering) == 0
}

// leak lets the garbage collector report a lease that was not released. It is reachable from the lease only.
type leak struct {
	cleanup runtime.Cleanup
	_       *byte // without a pointer in it, a 32-bit runtime might put it beside objects that stay
}

// track returns a leak that is reported unless it is released before it is unreachable, or nil without OnLeak.
func (r *root[K, V]) track(k K) *leak {
	report := r.config.OnLeak
	if report == nil {
		return nil
	}
	type acquired struct {
		key   K
		stack []byte
	}
	l := new(leak)
	l.cleanup = runtime.AddCleanup(l, func(a acquired) { report(a.key, a.stack) }, acquired{k, debug.Stack()})
	return l
}

// released says that the lease has ended.
func (l *leak) released() {
	if l != nil {
		l.cleanup.Stop()
	}
}
