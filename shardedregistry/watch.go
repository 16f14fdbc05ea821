package shardedregistry

import (
	"cmp"
	"context"
	"iter"
	"math/bits"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Event is a change of a key and what the key holds after it.
type Event[K comparable, V any] struct {
	Key     K // as it is stored: normalised
	Value   V // the last one if Deleted
	Version Version
	Deleted bool
	Expired bool // Deleted by Config.TTL
}

// Watch returns an iterator over the keys that change. A loop over it begins to watch when it
// begins, sleeps while there is nothing to yield, and ends when its body leaves it or ctx is done.
//
// A loop may skip what a key held in between, as a gap in its versions shows, but never misses what
// it holds in the end, or that it was deleted: a change that takes effect after the loop has begun
// is yielded, unless the key has changed again by the time the loop gets to it, and then the later
// change is. The versions of a key increase; changes of different keys come in no particular order.
// A change from before the loop began is yielded only if its call, or another one that had changed the
// key, had not returned by then.
//
// A loop keeps some 180 bytes for each key that has changed and is present, and for up to as many,
// or 64, that were deleted. It also keeps each deleted key with its last value until it comes to it:
// while its body waits, all that come and go. A change allocates 24 bytes for each loop that is told
// of it, unless its key waits already.
//
// Watch panics if ctx is nil.
//
// Watch is wait-free; the loop is blocking: it waits for changes or ctx, and, where a key was
// deleted, for a hash bucket. It takes effect when the loop begins, and, for each change, when the
// key is read.
func (r *Registry[K, V]) Watch(ctx context.Context, filters ...Filter[K]) iter.Seq[Event[K, V]] {
	if ctx == nil {
		panic("shardedregistry: Watch called with a nil context")
	}
	filters = slices.Clone(filters)
	return func(yield func(Event[K, V]) bool) {
		rt := r.install()
		w := newWatcher(rt, interestOf(rt, filters))
		defer w.close()
		run(ctx, w, yield)
	}
}

// WatchSnapshot returns an iterator over what the registry holds and its changes from then on. A
// loop yields a snapshot first, with no event, also if it is empty; and then events as Watch does,
// each with a nil snapshot. No change is missed in between, and no event repeats what the snapshot
// contains, or deletes what the loop has not shown.
//
// The loop keeps keys and versions of the snapshot. With filters, that has only the keys that they
// accept.
//
//	for state, event := range plans.WatchSnapshot(ctx) {
//		if state != nil {
//			view = maps.Collect(state.All())
//		} else if event.Deleted {
//			delete(view, event.Key)
//		} else {
//			view[event.Key] = event.Value
//		}
//	}
//
// WatchSnapshot panics if ctx is nil.
//
// WatchSnapshot is wait-free; the loop is blocking as those over Watch and Snapshot are. It takes
// effect when the snapshot's cut is made, and, for each change, when the key is read.
func (r *Registry[K, V]) WatchSnapshot(ctx context.Context, filters ...Filter[K]) iter.Seq2[*Snapshot[K, V], Event[K, V]] {
	if ctx == nil {
		panic("shardedregistry: WatchSnapshot called with a nil context")
	}
	filters = slices.Clone(filters)
	return func(yield func(*Snapshot[K, V], Event[K, V]) bool) {
		rt := r.install()
		w := newWatcher(rt, interestOf(rt, filters))
		defer w.close()
		if ctx.Err() != nil {
			return
		}
		s := snapshot(w.root) // LP(WatchSnapshot): its cut is made
		if !w.interest.hasAll() {
			s.contents.keep(w.interest.has)
		}
		w.baseline = newBaseline(&s.contents)
		if yield(s, Event[K, V]{}) {
			run(ctx, w, func(e Event[K, V]) bool { return yield(nil, e) })
		}
	}
}

// run yields events until ctx is done or yield returns false.
func run[K comparable, V any](ctx context.Context, w *watcher[K, V], yield func(Event[K, V]) bool) {
	for ctx.Err() == nil {
		n := w.next()
		if n == nil {
			w.sleep(ctx)
			continue
		}
		if k, rec := w.look(n); rec != nil && !yield(rec.event(k)) {
			return
		}
	}
}

// event returns what to tell of r, which k holds or held.
func (r *record[K, V]) event(k hkey[K]) Event[K, V] {
	return Event[K, V]{Key: k.Key, Value: r.value, Version: r.version(), Deleted: r.dead(), Expired: r.expired()}
}

// watcher is one loop over Watch or WatchSnapshot. Writers push notifications
// into its inbox and wake it; all else belongs to the goroutine of the loop.
type watcher[K comparable, V any] struct {
	root     *root[K, V]
	interest interest[K] // immutable; tellers read it too
	number   uint64      // set before tellers see w; see member

	// inbox holds the notifications that have not been taken, or &closed when the loop has
	// ended. Writers push by CAS, the watcher takes all at once.
	inbox  atomics.Pointer[notification[K, V]]
	closed notification[K, V]

	waker atomics.Waker // what the watcher sleeps on until writers wake it

	todo          *notification[K, V]   // taken from the inbox, oldest first, not yet looked at
	subscriptions []*subscription[K, V] // all that it has looked at and may still be at a cell
	sweep         int                   // the number of subscriptions at which keep looks for those that are gone
	baseline      *baseline[K, V]       // of WatchSnapshot
}

// baseline is the snapshot that a loop over WatchSnapshot has yielded first.
type baseline[K comparable, V any] struct {
	keys     []K
	versions []Version // of the keys; 0 once it was claimed
	table    keyTable  // of keys
}

// minSweep is at how many subscriptions a watcher looks for those that are no longer
// needed for the first time: few enough to keep no memory worth mention, and
// enough that most watchers never do.
func minSweep() int { return atomics.Limit(64, 1) }

// newWatcher returns a watcher that has joined the subscribers, to be told of what is in
// an interest.
func newWatcher[K comparable, V any](rt *root[K, V], in interest[K]) *watcher[K, V] {
	w := &watcher[K, V]{root: rt, interest: in, sweep: minSweep()}
	w.join()
	return w
}

// push puts n in the inbox, unless the loop has ended. It is retried only when
// another notification was pushed or all were taken.
func (w *watcher[K, V]) push(n *notification[K, V]) bool {
	for {
		top := w.inbox.Load()
		if top == &w.closed {
			return false
		}
		n.next = top
		if w.inbox.CompareAndSwap(top, n) {
			return true
		}
	}
}

// next takes a notification, at whose key the caller then looks, or returns nil.
func (w *watcher[K, V]) next() *notification[K, V] {
	if w.todo == nil {
		if w.todo = w.takeAll(nil); w.todo == nil {
			return nil
		}
	}
	n := w.todo
	w.todo, n.next = n.next, nil // a subscription keeps its last notification, which must not keep others
	n.stage.Store(taken)
	return n
}

// takeAll takes what is in the inbox, oldest first, and leaves rest there.
func (w *watcher[K, V]) takeAll(rest *notification[K, V]) (first *notification[K, V]) {
	for n := w.inbox.Swap(rest); n != nil; {
		first, n, n.next = n, n.next, first
	}
	return first
}

// sleep returns when there may be something in the inbox, or ctx is done.
func (w *watcher[K, V]) sleep(ctx context.Context) {
	e := w.waker.Event()
	if w.inbox.Load() == nil {
		_ = e.WaitContext(ctx) // run asks ctx
	}
}

// look returns the key of n and the record to yield, or nil if nothing is new.
//
// Only what is in the table counts. If another cell is there than the one that
// has s, its creator has told w, or has found w not yet watching. If none is
// there, w has seen the deletion, or has come after it: a dead cell stays until
// its deleter has pushed a notification, and then until that is done.
func (w *watcher[K, V]) look(n *notification[K, V]) (k hkey[K], rec *record[K, V]) {
	s := n.subscription
	c := s.cell()
	if c == nil {
		return k, nil
	}
	w.keep(s)
	// LP(Watch, WatchSnapshot), each event: the record is read.
	rec = w.root.held(c)
	n.stage.Store(done)
	alive := rec != nil && !rec.dead()
	if !alive {
		w.root.tidy(s.key, w.number)
	}
	if rec == nil || rec.version() <= s.last {
		return k, nil
	}
	known := alive || s.shown || w.baseline == nil
	s.last, s.shown = rec.version(), alive
	if !known || !w.shows(c.key) {
		return k, nil
	}
	return c.named(s.key.Hash), rec
}

// shows reports whether the loop shows k, of which it was told. It may run a function of
// the user's, which may not return.
func (w *watcher[K, V]) shows(k K) bool { return w.interest.match == nil || w.interest.match(k) }

// keep remembers s, so that it can be taken away in the end. It forgets those
// that have gone with the last cell of their key, now and then: as many as it
// keeps have come since it did so before.
func (w *watcher[K, V]) keep(s *subscription[K, V]) {
	if s.known {
		return
	}
	s.known = true
	if w.baseline != nil {
		s.last = w.baseline.claim(s.key)
		s.shown = s.last != 0
	}
	if len(w.subscriptions) >= w.sweep {
		w.subscriptions = slices.DeleteFunc(w.subscriptions, func(s *subscription[K, V]) bool { return s.cell() == nil })
		w.sweep = max(minSweep(), 2*len(w.subscriptions))
	}
	w.subscriptions = append(w.subscriptions, s)
}

// newBaseline returns the base of a watcher that shows s.
func newBaseline[K comparable, V any](s *contents[K, V]) *baseline[K, V] {
	b := &baseline[K, V]{keys: s.keys, versions: make([]Version, len(s.keys)), table: keyTableOf(s.keys, s.codec.hash)}
	for i, rec := range s.records {
		b.versions[i] = rec.version()
	}
	return b
}

// claim returns the version of k, or 0, and from then on 0.
func (b *baseline[K, V]) claim(k hkey[K]) (v Version) {
	if i := b.table[slotOf(b.table, b.keys, k)]; i != 0 {
		v, b.versions[i-1] = b.versions[i-1], 0
	}
	return v
}

// isClosed reports whether the loop has ended.
func (w *watcher[K, V]) isClosed() bool { return w.inbox.Load() == &w.closed }

// close ends the loop and leaves nothing behind. A teller that pushes a notification
// from now on fails, and takes away the subscription that it has made for it.
func (w *watcher[K, V]) close() {
	last := w.takeAll(&w.closed)
	w.leave()
	for _, list := range []*notification[K, V]{w.todo, last} {
		for n := list; n != nil; n = n.next {
			n.stage.Store(done)
			w.subscriptions = append(w.subscriptions, n.subscription)
		}
	}
	for _, s := range w.subscriptions {
		s.unsubscribe()
		w.root.tidy(s.key, w.number)
	}
}

// subscription is what connects one watcher and one key. The cells that follow one
// another in the table hand it on.
type subscription[K comparable, V any] struct {
	watcher *watcher[K, V]
	key     hkey[K]

	// latest is the last notification of this subscription, or nil. Tellers of a change
	// replace one that was taken by a new one, by CAS; one that was not taken stays
	// until it is. The watcher reads.
	latest atomics.Pointer[notification[K, V]]

	// What follows belongs to the watcher's goroutine.
	known bool    // it is in the watcher's list
	shown bool    // the watcher has shown the key, and not its deletion since
	last  Version // that the watcher has seen
}

// The stages of a notification.
const (
	waiting uint32 = iota // it is in the inbox, or about to be put there
	taken                 // its watcher is about to look
	done                  // its watcher has looked
)

// notification asks a watcher to look at a key. It is put in the watcher's inbox once.
type notification[K comparable, V any] struct {
	subscription *subscription[K, V]
	next         *notification[K, V] // below it in the inbox; after it was taken, the watcher's

	// stage only grows, and the watcher alone stores it. A teller that has stored a record
	// and then finds a notification waiting knows that the watcher will find the record.
	// One that finds it done knows that the watcher has read a record, and needs the
	// table no more for it.
	stage atomics.Uint32
}

// notify makes the watcher of s look at the key after now, and reports whether it
// will; if not, it has gone. Only a goroutine that finds no notification waiting pushes
// one, so there are no more of them than goroutines that have begun to.
//
// A goroutine that pushes a notification and stalls would leave others in doubt whether
// it is in the inbox and its watcher awake. So latest shows it only when both are true,
// and until then each goroutine may push its own.
//
// While the notification that latest shows is not done, none that is done replaces it: a
// watcher takes one after the other, so a notification that was not waiting before mine
// was pushed, or while mine is not done, was taken before mine.
func (s *subscription[K, V]) notify() bool {
	old := s.latest.Load()
	if old.waits() {
		return true
	}
	mine := &notification[K, V]{subscription: s}
	if !s.watcher.push(mine) {
		return false
	}
	s.watcher.waker.Wake()
	for !s.latest.CompareAndSwap(old, mine) { // until it is there, or one that is as good
		if old = s.latest.Load(); old.waits() || mine.stage.Load() == done {
			break
		}
	}
	return true
}

// cell returns the cell that the table has for the key of s, if s is there, or nil.
func (s *subscription[K, V]) cell() *cell[K, V] {
	if c := s.watcher.root.cells.Load(s.key); c != nil && c.meta.Load().subscribed().has(s) {
		return c
	}
	return nil
}

// waits reports whether n is in an inbox, and was put there before its watcher was
// woken.
func (n *notification[K, V]) waits() bool { return n != nil && n.stage.Load() == waiting }

// subscribe adds fresh, sorted by ranks, to c, but for those whose watchers have a subscription
// there, and returns what their watchers have there then. However many are added, the list is
// copied once.
func subscribe[K comparable, V any](c *cell[K, V], fresh []*subscription[K, V]) []*subscription[K, V] {
	for { // until no other subscription comes or goes between looking and adding
		var (
			now   = c.meta.Load()
			list  = now.subscribed()
			added = fresh
			there []*subscription[K, V]
		)
		if list.members != nil {
			added = nil
			for _, s := range fresh {
				if old := list.of(s.watcher); old != nil {
					there = append(there, old)
				} else {
					added = append(added, s)
				}
			}
		}
		if len(added) == 0 {
			return there
		}
		if c.meta.CompareAndSwap(now, subscriptionList[K, V]{list.with(added)}.in(now)) {
			return append(added, there...)
		}
	}
}

// subscriptionList is the subscriptions at a cell.
type subscriptionList[K comparable, V any] struct{ *members[*subscription[K, V]] }

// subscribed returns the subscriptions of m, which may be nil.
func (m *cellMeta[K, V]) subscribed() (l subscriptionList[K, V]) {
	if m != nil {
		l = m.subscriptions
	}
	return l
}

// in returns a copy of m, which may be nil, with the subscriptions of l, or nil if
// nothing is left.
func (l subscriptionList[K, V]) in(m *cellMeta[K, V]) *cellMeta[K, V] {
	next := m.now()
	if next.subscriptions = l; l.members == nil && next.spelled == nil && !next.kept {
		return nil
	}
	return &next
}

// of returns the subscription of w, or nil.
func (l subscriptionList[K, V]) of(w *watcher[K, V]) *subscription[K, V] {
	for _, s := range l.near(w.number) {
		if s.watcher == w {
			return s
		}
	}
	return nil
}

// needed reports whether a watcher has yet to look at the cell, which is dead. It asks those
// near rank first: if they wait, it need not ask all.
func (l subscriptionList[K, V]) needed(rank uint64) bool {
	return l.some(rank, func(s *subscription[K, V]) bool {
		n := s.latest.Load()
		return n != nil && n.stage.Load() != done
	})
}

// handedOn takes away the subscriptions of watchers that have gone, perhaps before they
// could find theirs here.
func (l subscriptionList[K, V]) handedOn() {
	l.each(func(s *subscription[K, V]) {
		if s.watcher.isClosed() {
			s.unsubscribe()
		}
	})
}

// unsubscribe takes s away from the cell that has it. A creator that hands s on
// meanwhile will find that the watcher has gone, and do the same: see publish.
func (s *subscription[K, V]) unsubscribe() {
	for { // until no other subscription comes or goes between looking and removing
		c := s.watcher.root.cells.Load(s.key)
		if c == nil {
			return
		}
		now := c.meta.Load()
		list := now.subscribed()
		if !list.has(s) || c.meta.CompareAndSwap(now, subscriptionList[K, V]{list.without(s)}.in(now)) {
			return
		}
	}
}

// subscribers has the watchers and calls of Wait that are to be told of changes. It is
// immutable: to change it, replace it. Nil stands for none.
//
// An operation loads it after it has stored a record. So a subscriber that had joined
// before the record was stored is told, and one that joins later can read the record.
type subscribers[K comparable, V any] struct {
	watchers *watcherSet[K, V] // nil if there are none
	waiters  int               // calls of Wait that may sleep, for any key
}

// join adds w to the subscribers.
func (w *watcher[K, V]) join() {
	// LP(Watch, WatchSnapshot), the subscription: the subscribers with w are stored.
	w.root.changeSubscribers(func(s *subscribers[K, V]) { s.watchers = s.watchers.with(w) })
}

// leave removes w from the subscribers.
func (w *watcher[K, V]) leave() {
	w.root.changeSubscribers(func(s *subscribers[K, V]) { s.watchers = s.watchers.without(w) })
}

// changeSubscribers replaces the subscribers by what change makes of them. It is retried
// only when another subscriber has come or gone meanwhile.
func (rt *root[K, V]) changeSubscribers(change func(*subscribers[K, V])) {
	for {
		old := rt.subscribers.Load()
		var now subscribers[K, V]
		if old != nil {
			now = *old
		}
		change(&now)
		next := &now
		if now.watchers == nil && now.waiters == 0 {
			next = nil
		}
		if rt.subscribers.CompareAndSwap(old, next) {
			return
		}
	}
}

// ignores reports whether nobody is told of key. While a call waits for some key, it says no.
func (s *subscribers[K, V]) ignores(hash uint64, key K) bool {
	return s.waiters == 0 && s.watchers.ignores(hash, key)
}

// notify tells a that k has changed, and reports whether a watcher will look at k. It
// names the key alone. A watcher reads the key itself: by then the key may hold
// something newer, also when the caller has stalled.
func (rt *root[K, V]) notify(a *subscribers[K, V], k hkey[K]) (awaited bool) {
	if a.waiters > 0 {
		rt.wake(k)
	}
	return a.watchers.notify(rt, k)
}

// notify tells each watcher of k at the cell that the table has now. If that is not the
// cell that the caller has changed, then a later operation on k has told the watchers
// since, or will, also of the death of the cell.
func (set *watcherSet[K, V]) notify(rt *root[K, V], k hkey[K]) (awaited bool) {
	var (
		c      *cell[K, V]
		loaded bool
		list   subscriptionList[K, V] // of c
		few    [4]*subscription[K, V]
		fresh  = few[:0] // of watchers that have none at c
	)
	tell := func(s *subscription[K, V]) {
		if s.notify() {
			awaited = true
		} else {
			s.unsubscribe() // its watcher has gone, and may not know this subscription
		}
	}
	set.each(k, func(w *watcher[K, V]) {
		if !loaded {
			if c, loaded = rt.cells.Load(k), true; c != nil {
				list = c.meta.Load().subscribed()
			}
		}
		switch s := list.of(w); {
		case s != nil:
			tell(s)
		case c != nil:
			fresh = append(fresh, &subscription[K, V]{watcher: w, key: k})
		}
	})
	if len(fresh) == 0 {
		return awaited
	}
	fresh = slices.CompactFunc(byRank(fresh), func(a, b *subscription[K, V]) bool { return a.watcher == b.watcher })
	for _, s := range subscribe(c, fresh) {
		tell(s)
	}
	return awaited
}

// each calls f for the watchers that are told of k: for one with several topics that
// have k, once for each. S may be nil.
func (s *watcherSet[K, V]) each(k hkey[K], f func(*watcher[K, V])) {
	if s == nil {
		return
	}
	s.all.each(f)
	s.keys.find(k.Hash, &k.Key).each(f)
	for i := range s.prefixes {
		s.at(&s.prefixes[i], k.Key).each(f)
	}
}

const (
	fewMembers = 16            // beyond so many, a leaf becomes a branch
	rankBits   = 4             // of a rank that a branch takes
	membersFan = 1 << rankBits // so many children a branch has
)

// members is a set of the loops that watch one topic, or of the subscriptions at one cell. A few
// are a list; more are a trie over their ranks, so that finding, adding and removing one takes
// log n steps. It is immutable. Nil is the empty set.
type members[M member] struct {
	few []M
	one [1]M // for few, if that is one

	below *[membersFan]*members[M] // nil in a leaf
	shift int                      // of a rank, to leave the index in below as the last bits
	rank  uint64                   // of one that is or was below: in what is before these bits all are alike
}

// member has a rank, which grows as loops join. To tell them in this order is fast: what they
// allocated when they joined lies in this order, too.
type member interface {
	comparable
	rank() uint64
}

func (w *watcher[K, V]) rank() uint64      { return w.number }
func (s *subscription[K, V]) rank() uint64 { return s.watcher.number }

// next returns the index in below that leads to rank.
func (s *members[M]) next(rank uint64) uint64 { return rank >> s.shift % membersFan }

// near returns a few members, among them the one with a rank, if there is one.
func (s *members[M]) near(rank uint64) []M {
	for s != nil && s.below != nil {
		s = s.below[s.next(rank)]
	}
	if s == nil {
		return nil
	}
	return s.few
}

func (s *members[M]) has(m M) bool { return slices.Contains(s.near(m.rank()), m) }

// with returns a copy of s with more, none of which it has, sorted by their ranks.
func (s *members[M]) with(more []M) *members[M] {
	if s == nil {
		s = new(members[M])
	}
	rank := s.rank
	if s.below == nil {
		n := len(s.few) + len(more)
		if n <= fewMembers {
			return leaf(n, s.few, more)
		}
		more = byRank(slices.Concat(s.few, more))
		rank = more[0].rank()
	}
	var (
		below [membersFan]*members[M]
		next  = &members[M]{below: &below, shift: s.shift, rank: rank}
		apart = (rank ^ more[0].rank()) | (rank ^ more[len(more)-1].rank())
		shift = (bits.Len64(apart|1) - 1) / rankBits * rankBits
	)
	switch {
	case s.below == nil && apart == 0: // they have one rank
		return leaf(len(more), more, nil)
	case s.below == nil:
		next.shift = shift
	case shift > s.shift: // s is one child of what is returned
		next.shift = shift
		below[next.next(rank)] = s
	default:
		below = *s.below
	}
	for len(more) > 0 { // those of one child after the other
		d, n := next.next(more[0].rank()), 1
		for n < len(more) && next.next(more[n].rank()) == d {
			n++
		}
		below[d] = below[d].with(more[:n])
		more = more[n:]
	}
	return next
}

// without returns a copy of s without m.
func (s *members[M]) without(m M) *members[M] {
	switch {
	case s == nil:
		return nil
	case s.below == nil:
		if i := slices.Index(s.few, m); i >= 0 {
			return leaf(len(s.few)-1, s.few[:i], s.few[i+1:])
		}
		return s
	}
	below := *s.below
	at := &below[s.next(m.rank())]
	*at = (*at).without(m)
	if below == [membersFan]*members[M]{} {
		return nil
	}
	return &members[M]{below: &below, shift: s.shift, rank: s.rank}
}

// leaf returns a leaf of the n members in two lists.
func leaf[M member](n int, first, second []M) *members[M] {
	if n == 0 {
		return nil
	}
	s := new(members[M])
	if s.few = s.one[:0]; n > 1 {
		s.few = make([]M, 0, n)
	}
	s.few = append(append(s.few, first...), second...)
	return s
}

// byRank sorts list by ranks and returns it.
func byRank[M member](list []M) []M {
	slices.SortFunc(list, func(a, b M) int { return cmp.Compare(a.rank(), b.rank()) })
	return list
}

// some reports whether f returns true for a member, after which it asks no other. It begins near a
// rank, and goes both ways from there. So callers that begin at their own ask few others, unless f
// returns true for few.
func (s *members[M]) some(rank uint64, f func(M) bool) bool {
	switch {
	case s == nil:
		return false
	case s.below == nil:
		return slices.ContainsFunc(s.few, f)
	}
	for i := range uint64(membersFan) {
		if s.below[s.next(rank)^i].some(rank, f) {
			return true
		}
	}
	return false
}

// each calls f for each member.
func (s *members[M]) each(f func(M)) {
	s.some(0, func(m M) bool {
		f(m)
		return false
	})
}
