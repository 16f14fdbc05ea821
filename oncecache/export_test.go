package oncecache

import (
	"context"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Validate returns the error that New would.
func Validate[K comparable, V any](settings *Config[K, V]) error { return settings.validate() }

// StartSet does the first step of Set for a key that is present, and returns the second.
func StartSet[K comparable, V any](c *Cache[K, V], k K, v V) (finish func() (V, bool)) {
	r := c.shared()
	n := &entry[K, V]{key: k, value: v}
	r.ready(n, limits{})
	e := r.entries.Swap(r.at(k), n)
	return func() (V, bool) { return valueIf(e, r.overtake(e, n)) }
}

// StartDelete does the first step of Delete for a key that is present, and returns the second.
func StartDelete[K comparable, V any](c *Cache[K, V], k K) (finish func() (V, bool)) {
	r := c.shared()
	e := r.take(r.at(k))
	return func() (V, bool) { return valueIf(e, r.forget(e)) }
}

// valueIf returns the value of e if there is one.
func valueIf[K comparable, V any](e *entry[K, V], has bool) (v V, ok bool) {
	if has {
		v = e.value
	}
	return v, has
}

// StartGet does the first step of Get for a key that is present, and returns the second.
func StartGet[K comparable, V any](c *Cache[K, V], k K) (finish func() (V, bool)) {
	r := c.shared()
	e, _ := r.find(k)
	return func() (V, bool) { return valueIf(e, r.use(e)) }
}

// Creating returns the counter of entries that have no value, and the number of entries of any
// kind in the table.
func Creating[K comparable, V any](c *Cache[K, V]) (creating, entries int) {
	r := c.shared()
	a := r.accounting
	return tally(a.work.Load()).creating() - int(a.aside.Load()), r.entries.Len()
}

// CopyLease copies what must not be copied.
func CopyLease[K comparable, V any](l *Lease[K, V]) *Lease[K, V] {
	return &Lease[K, V]{entry: l.entry, held: l.held, root: l.root}
}

// SpreadUsers does what two users of a value do that collide.
func SpreadUsers[K comparable, V any](l *Lease[K, V]) {
	s := make([]stripe, atomics.Stripes())
	l.entry.state.Load().users.stripes.Install(&s)
}

// Dependences returns how many the creation has listed whose context ctx is.
func Dependences(ctx context.Context) int { return len(partOf(ctx).dependences()) }

// Hidden returns how many flights Close would find that are in no table.
func Hidden[K comparable, V any](c *Cache[K, V]) int {
	return len(c.shared().backlog.flights(nil))
}

// Named returns the keys that a PendingError of c would have.
func Named[K comparable, V any](c *Cache[K, V]) []any {
	var p PendingError
	c.shared().backlog.name(&p)
	return slices.Concat(p.Creating, p.Leased, p.Closing)
}

// Claims returns how many keys of a cache with CloseBeforeCreate are not free.
func Claims[K comparable, V any](c *Cache[K, V]) int { return c.shared().entries.Len() }

// Pending returns what Close would wait for.
func Pending[K comparable, V any](c *Cache[K, V]) int {
	return tally(c.shared().accounting.work.Load()).pending()
}

// Kept returns how many errors the cache keeps, if it has no bounds.
func Kept[K comparable, V any](c *Cache[K, V]) int64 { return int64(Places(c)) }

// Places returns how many entries the order of a cache with bounds has.
func Places[K comparable, V any](c *Cache[K, V]) (n int) {
	o := c.shared().order
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

func (m *mark) Touch()             { m.touch() }
func (m *mark) Renews() bool       { _, renew := m.touch(); return renew }
func (m *mark) MakeDue()           { m.bits.Or(due) }
func (m *mark) Doom(leased bool)   { m.doom(func() bool { return leased }, usedForBoth, 0) }
func (m *mark) Held()              { m.held() }
func (m *mark) AskedBySieve() bool { return m.asked(usedForSieve) }
func (m *mark) AskedByIdle() bool  { return m.asked(usedForIdle) }

// Sweep looks at all that is due, as the timer does, and returns how many entries are to leave.
func Sweep[K comparable, V any](c *Cache[K, V]) (n int) {
	r := c.shared()
	if r.order == nil {
		return 0
	}
	r.order.mu.Lock()
	timer := r.order.timer
	r.order.mu.Unlock()
	for more := true; more; {
		var out []*node[K, V]
		out, more = r.order.few(r, timer)
		r.evictAll(out)
		n += len(out)
	}
	return n
}

// SweepIdle removes what nobody has used since the last time, in a cache without IdleTimeout, whose
// timer would do so too.
func SweepIdle[K comparable, V any](c *Cache[K, V]) {
	r := c.shared()
	o := r.order
	var out []*node[K, V]
	o.mu.Lock()
	for n, next := o.oldest, (*node[K, V])(nil); n != nil; n = next {
		next = n.newer
		if n.life == nil {
			n.life = &lifetime[K, V]{node: n, expires: never, renews: never}
		}
		n.life.asks = atOnce
		out = o.check(r, n, r.now(), out)
	}
	o.mu.Unlock()
	r.evictAll(out)
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
	n := r.entries.Load(r.at(k)).state.Load().node
	o := r.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if !n.entry.mark.doom(n.leased, 0, why) {
		panic("oncecache: it is in use")
	}
	o.remove(n)
	return func() { r.evictAll([]*node[K, V]{n}) }
}

// ReplaceAsRefresh puts v in the place of what k has, as Refresh does. If v is used, it is as if a hit
// came before the order has heard of it.
func ReplaceAsRefresh[K comparable, V any](c *Cache[K, V], k K, v V, used bool) {
	r := c.shared()
	e, _ := r.find(k)
	if r.owns {
		r.accounting.begin(onePending)
	}
	n := &entry[K, V]{key: k, value: v}
	r.ready(n, limits{until: never})
	if used {
		n.mark.touch()
	}
	if !r.replace(e, n) {
		panic("oncecache: it has gone")
	}
	r.letGo(e, r.uncount(e), ReasonReplaced)
}

// StartExpiry does the first step of the expiry of what k has, as the timer does it, and returns
// the second.
func StartExpiry[K comparable, V any](c *Cache[K, V], k K) (finish func()) {
	return ExpiryOf(c, k)()
}

// ExpiryOf returns the expiry of what k has. Start returns nil if that has left the order, where
// the timer does not find it any more.
func ExpiryOf[K comparable, V any](c *Cache[K, V], k K) (start func() (finish func())) {
	r := c.shared()
	o := r.order
	n := r.entries.Load(r.at(k)).state.Load().node
	return func() func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if n.stage == left {
			return nil
		}
		out := o.expire(nil, n)
		return func() { r.evictAll(out) }
	}
}

// StartRefresh begins a Refresh of what k has, whose function never returns, and returns its timeout.
func StartRefresh[K comparable, V any](c *Cache[K, V], k K) (timeOut func()) {
	r := c.shared()
	e, _ := r.find(k)
	n, _ := r.newFlight(context.Background(), &entry[K, V]{key: k}, oneCaller)
	if !r.beginRefresh(n, r.at(k), e) {
		panic("oncecache: another call refreshes it, or it has gone")
	}
	return func() { r.timeOut(n.entry, n.state, e) }
}

// TimeOut ends the creation of k that runs, if one does, as its timer would.
func TimeOut[K comparable, V any](c *Cache[K, V], k K) {
	r := c.shared()
	if e := r.entries.Load(r.at(k)); e != nil {
		if s := e.state.Load(); s.creating() {
			r.timeOut(e, s, nil)
		}
	}
}

// MakeDue makes the next use of the value of k renew it, as the timer does.
func MakeDue[K comparable, V any](c *Cache[K, V], k K) {
	r := c.shared()
	n := r.entries.Load(r.at(k)).state.Load().node
	r.order.mu.Lock()
	defer r.order.mu.Unlock()
	if n.life.renews = atOnce; n.stage == there {
		r.order.check(r, n, r.now(), nil)
		return
	}
	n.life.renews = never
	n.entry.mark.bits.Or(due)
}

// Lifetimes returns how many places have to be looked at some time.
func Lifetimes[K comparable, V any](c *Cache[K, V]) int {
	o := c.shared().order
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, l := range o.heap {
		if l.at != i+1 || l.node.stage != there || i > 0 && l.next < o.heap[(i-1)/2].next {
			panic("oncecache: the heap is broken")
		}
	}
	return len(o.heap)
}

// LifetimeTimer reports whether a timer is under way.
func LifetimeTimer[K comparable, V any](c *Cache[K, V]) bool {
	o := c.shared().order
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.timer != nil
}

// LimitClosers sets how many goroutines close values of c, which is not in use yet.
func LimitClosers[K comparable, V any](c *Cache[K, V], n int) { c.shared().backlog.limit = n }

// BacklogIsSmall reports whether the backlog of c, which may be closed, has room for few values, and none for else.
func BacklogIsSmall[K comparable, V any](c *Cache[K, V]) bool {
	r := c.shared()
	if r.closed() {
		r = r.before
	}
	b := r.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hidden == nil && cap(b.values) <= 64 && b.queue == nil
}
