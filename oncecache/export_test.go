package oncecache

import (
	"context"
	"slices"
	"unsafe"
)

// StartSet does the first step of Set for a key that is present, and returns
// the second.
func StartSet[K comparable, V any](c *Cache[K, V], k K, v V) (finish func() (V, bool)) {
	r := c.shared()
	n := newBoxed(r, k, v)
	e := r.entries.Swap(r.at(k), n)
	return func() (V, bool) { return valueIf[V](e, r.replaced(e, n)) }
}

// StartDelete does the first step of Delete for a key that is present, and
// returns the second.
func StartDelete[K comparable, V any](c *Cache[K, V], k K) (finish func() (V, bool)) {
	r := c.shared()
	e := r.take(r.at(k))
	return func() (V, bool) { return valueIf[V](e, r.removed(e)) }
}

// valueIf returns the value of e if there is one.
func valueIf[V any, K comparable](e *entry[K], has bool) (v V, ok bool) {
	if has {
		v = *valueOf[V](e)
	}
	return v, has
}

// StartGet does the first step of Get for a key that is present, and returns
// the second.
func StartGet[K comparable, V any](c *Cache[K, V], k K) (finish func() (V, bool)) {
	e, _ := c.shared().find(k)
	return func() (V, bool) { return get[V](e) }
}

// Creating returns the counter of entries that are being created, and the
// number of entries of any kind in the table.
func Creating[K comparable, V any](c *Cache[K, V]) (creating, entries int) {
	r := c.shared()
	return r.creating(), r.size()
}

// CopyLease copies what must not be copied.
func CopyLease[K comparable, V any](l *Lease[K, V]) *Lease[K, V] {
	return &Lease[K, V]{box: l.box, held: l.held, root: l.root}
}

// Dependences returns how many the creation has listed whose context ctx is.
func Dependences(ctx context.Context) (n int) {
	for l := partOf(ctx).awaited(); l != nil; l = l.older {
		n++
	}
	return n
}

// Hidden returns how many flights Close would find that are in no table.
func Hidden[K comparable, V any](c *Cache[K, V]) int {
	return len(c.shared().backlog.flights(func(K) bool { return true }))
}

// Named returns the keys that a PendingError of c would have.
func Named[K comparable, V any](c *Cache[K, V]) []any {
	var p PendingError
	c.shared().backlog.name(&p)
	return slices.Concat(p.Creating, p.Leased, p.Closing)
}

// Claims returns how many keys are claimed, in a cache with CloseBeforeCreate.
func Claims[K comparable, V any](c *Cache[K, V]) int { return c.shared().claims.(*claims[K]).Len() }

// Pending returns what Close would wait for.
func Pending[K comparable, V any](c *Cache[K, V]) int {
	r := c.shared()
	return tally(r.accounting.work.Load()).pending() + r.spared()
}

// WithoutSpares makes creations in c, which is not in use yet, allocate their flights.
func WithoutSpares[K comparable, V any](c *Cache[K, V]) { c.shared().spares = nil }

// SpareWords returns where the words are that creations write in each spare of c.
func SpareWords[K comparable, V any](c *Cache[K, V]) (all [][]uintptr) {
	r := c.shared()
	for i := range r.spares {
		s := &r.spares[i]
		all = append(all, []uintptr{
			// Safety: the addresses become numbers at once and are never followed.
			uintptr(unsafe.Pointer(&s.owner)), uintptr(unsafe.Pointer(&s.since)), uintptr(unsafe.Pointer(&s.created)), uintptr(unsafe.Pointer(&s.cells)),
		})
	}
	return all
}

// Kept returns how many errors the cache keeps, by its count.
func Kept[K comparable, V any](c *Cache[K, V]) int64 {
	return int64(len(c.shared().kept.(*keptErrors[K]).heap))
}

// Places returns how many entries the order of a cache with bounds has.
func Places[K comparable, V any](c *Cache[K, V]) (n int) {
	o := c.shared().sieve.(*sieve[K])
	o.mu.Lock()
	defer o.mu.Unlock()
	for s := o.newest; s != nil; s = s.older {
		n++
	}
	if n != o.len {
		panic("oncecache: the order has lost count")
	}
	return n
}

// Mark is the mark of an entry that has a place in the order.
type Mark = mark

func (m *mark) Touch()             { m.touch(nil) }
func (m *mark) Held()              { m.held() }
func (m *mark) AskedBySieve() bool { return m.asked(usedForSieve) }
func (m *mark) AskedByIdle() bool  { return m.asked(usedForIdle) }

// SweepIdle removes what nobody has used since the last time, in a cache with
// MaxEntries and no IdleTimeout, whose timer would sweep too.
func SweepIdle[K comparable, V any](c *Cache[K, V]) int {
	r := c.shared()
	return r.sieve.(*sieve[K]).sweepIdle(r)
}

// StartEviction does the first step of an eviction, and returns the second.
func StartEviction[K comparable, V any](c *Cache[K, V], k K) (finish func()) {
	return startEviction(c, k, 0)
}

// StartIdling is StartEviction because k is idle.
func StartIdling[K comparable, V any](c *Cache[K, V], k K) (finish func()) {
	return startEviction(c, k, idle)
}

func startEviction[K comparable, V any](c *Cache[K, V], k K, why uint32) (finish func()) {
	r := c.shared()
	n := sieveNodeOf[K](r.seek(k).state.Load().place)
	s := r.sieve.(*sieve[K])
	s.mu.Lock()
	defer s.mu.Unlock()
	if !n.mark().doom(n.leased, 0, why) {
		panic("oncecache: it is in use")
	}
	s.remove(n)
	return func() { r.evictAll([]*sieveNode[K]{n}) }
}

// ReplaceAsRefresh puts v in the place of what k has, as Refresh does that has
// begun to, and calls between before it does the rest.
func ReplaceAsRefresh[K comparable, V any](c *Cache[K, V], k K, v V, between func()) {
	r := c.shared()
	e, _ := r.find(k)
	if r.close != nil {
		r.own(k)
	}
	n := newBoxed(r, k, v)
	r.makeReady(n, limits{})
	if !r.entries.CompareAndSwap(r.at(k), e, n) {
		panic("oncecache: it has gone")
	}
	between()
	r.succeeded(e, n)
}

// StartExpiry does the first step of the expiry of what k has, as the timer does it, and
// returns the second.
func StartExpiry[K comparable, V any](c *Cache[K, V], k K) (finish func()) {
	return ExpiryOf(c, k)()
}

// ExpiryOf returns the expiry of what k has. Start returns nil if that has left the order, where
// the timer does not find it any more.
func ExpiryOf[K comparable, V any](c *Cache[K, V], k K) (start func() (finish func())) {
	r := c.shared()
	s := r.sieve.(*sieve[K])
	n := sieveNodeOf[K](r.seek(k).state.Load().place)
	return func() func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n.stage == left {
			return nil
		}
		out := s.expire(nil, n)
		return func() { r.evictAll(out) }
	}
}

// MakeDue makes the next use of the value of k renew it, as the timer does.
func MakeDue[K comparable, V any](c *Cache[K, V], k K) {
	r := c.shared()
	s := r.sieve.(*sieve[K])
	n := sieveNodeOf[K](r.seek(k).state.Load().place)
	s.mu.Lock()
	defer s.mu.Unlock()
	n.life = &lifetime{until: forever, next: forever, of: s.lives.renews}
	n.mark().used.Or(due)
}

// Lifetimes returns how many values of a cache with a TTL are to expire.
func Lifetimes[K comparable, V any](c *Cache[K, V]) int {
	s := c.shared().sieve.(*sieve[K])
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range s.lives.heap {
		if n.life.at != i+1 || n.stage != there || i > 0 && n.life.next < s.lives.heap[(i-1)/2].life.next {
			panic("oncecache: the heap of lifetimes is broken")
		}
	}
	return len(s.lives.heap)
}

// LifetimeTimer reports whether a timer waits for a value to expire.
func LifetimeTimer[K comparable, V any](c *Cache[K, V]) bool {
	s := c.shared().sieve.(*sieve[K])
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lives.timer != nil
}
