package shardedregistry

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// subscription is what connects one watcher and one key. The cells that follow one
// another in the table hand it on.
type subscription[K comparable] struct {
	watcher *watcher[K]
	key     hkey[K]

	// latest is the last notification of this subscription, or nil. Tellers of a change
	// replace one that was taken by a new one, by CAS; one that was not taken stays
	// until it is. The watcher reads.
	latest atomics.Pointer[notification[K]]

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
type notification[K comparable] struct {
	subscription *subscription[K]
	next         *notification[K] // below it in the inbox; after it was taken, the watcher's

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
func (s *subscription[K]) notify() bool {
	old := s.latest.Load()
	if old.waits() {
		return true
	}
	mine := &notification[K]{subscription: s}
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

// waits reports whether n is in an inbox, and was put there before its watcher was
// woken.
func (n *notification[K]) waits() bool { return n != nil && n.stage.Load() == waiting }

// subscribe returns the subscription of w at c, and whether it has added it, because
// there was none. A loop over Stream will take from a new one what is newer than pos. At
// is where it probably is, see subscriptionList.of. It returns nil if c takes no
// subscriptions any more.
func (w *watcher[K]) subscribe(c *cell[K], k hkey[K], at *int, pos Version) (s *subscription[K], isNew bool) {
	var fresh *subscription[K]
	for { // until no other subscription comes or goes between looking and adding
		now := c.meta.Load()
		list := subscriptionsOf(now)
		if s := list.of(w, at); s != nil {
			return s, false
		}
		if now != nil && now.gone {
			return nil, false
		}
		if fresh == nil {
			fresh = newSubscription(w, k, pos)
		}
		if c.meta.CompareAndSwap(now, list.with(fresh).in(now)) {
			return fresh, true
		}
	}
}

func newSubscription[K comparable](w *watcher[K], k hkey[K], pos Version) *subscription[K] {
	if w.stream != nil {
		return &newCursor(w, k, pos).subscription
	}
	return &subscription[K]{watcher: w, key: k}
}

// subscriptionList is the subscriptions at a cell, in the order in which they were added.
// It is immutable. Nil is the list of none.
type subscriptionList[K comparable] struct {
	all []*subscription[K]
	one [1]*subscription[K] // for all, if that is one
}

// subscriptionsOf returns the subscriptions of m, which may be nil. Like all code that
// knows the types of watchers it is no method of a type that all programs have.
func subscriptionsOf[K comparable](m *cellMeta[K]) *subscriptionList[K] {
	if m == nil || m.subscriptions == nil {
		return nil
	}
	return m.subscriptions.(*subscriptionList[K])
}

// in returns a copy of m, which may be nil, with the subscriptions of l, or nil if
// nothing is left.
func (l *subscriptionList[K]) in(m *cellMeta[K]) *cellMeta[K] {
	next := m.now()
	if next.subscriptions = l; l == nil {
		next.subscriptions = nil
		if next.spelled == nil && !next.kept && !next.gone {
			return nil
		}
	}
	return &next
}

func (l *subscriptionList[K]) list() []*subscription[K] {
	if l == nil {
		return nil
	}
	return l.all
}

// of returns the subscription of w, or nil. It begins to look at the index *at, and makes
// that the one after what it has found: a teller that asks for watchers in the order in
// which their subscriptions were added looks at each once.
func (l *subscriptionList[K]) of(w *watcher[K], at *int) *subscription[K] {
	list := l.list()
	if *at > len(list) { // it was an index of a longer list
		*at = 0
	}
	for i := range list {
		if i += *at; i >= len(list) {
			i -= len(list)
		}
		if list[i].watcher == w {
			*at = i + 1
			return list[i]
		}
	}
	return nil
}

// has reports whether s is in the list.
func (l *subscriptionList[K]) has(s *subscription[K]) bool { return slices.Contains(l.list(), s) }

// with returns a copy with s.
func (l *subscriptionList[K]) with(s *subscription[K]) *subscriptionList[K] {
	next := new(subscriptionList[K])
	if l == nil {
		next.all = append(next.one[:0], s)
	} else {
		next.all = append(slices.Clip(l.all), s)
	}
	return next
}

// without returns a copy without s, which is there.
func (l *subscriptionList[K]) without(s *subscription[K]) *subscriptionList[K] {
	if len(l.all) == 1 {
		return nil
	}
	return &subscriptionList[K]{all: slices.DeleteFunc(slices.Clone(l.all), func(x *subscription[K]) bool { return x == s })}
}

func (l *subscriptionList[K]) needed(dead *record) bool {
	for _, s := range l.all {
		if s.watcher.stream != nil {
			if Version(s.cursor().pos.Load()) < dead.version() && !s.watcher.unreachable() {
				return true
			}
		} else if n := s.latest.Load(); n != nil && n.stage.Load() != done {
			return true
		}
	}
	return false
}

// handedOn takes away the subscriptions of watchers that have gone, perhaps before they
// could find theirs here.
func (l *subscriptionList[K]) handedOn(rt *root[K]) {
	for _, s := range l.all {
		if s.watcher.unreachable() {
			s.unsubscribe()
		}
	}
}

// unsubscribe takes s away from the cell that has it. A creator that hands s on
// meanwhile will find that the watcher has gone, and do the same: see publish.
func (s *subscription[K]) unsubscribe() {
	for { // until no other subscription comes or goes between looking and removing
		c := s.watcher.root.cells.Load(s.key)
		if c == nil {
			return
		}
		now := c.meta.Load()
		list := subscriptionsOf(now)
		if !list.has(s) || c.meta.CompareAndSwap(now, list.without(s).in(now)) {
			return
		}
	}
}

// clear takes s away, if it is still there, and what was kept for its watcher, which
// has left, or which has lagged, or whose key has gone.
func (s *subscription[K]) clear() {
	s.unsubscribe()
	if s.watcher.stream != nil {
		s.watcher.streams().relax(s.key)
	}
	s.watcher.root.tidy(s.key)
}

// subscribers has the watchers, calls of Wait and changelog that are to be told of changes. It is
// immutable: to change it, replace it. Nil stands for none.
//
// An operation loads it after it has stored a record. So a subscriber that had joined
// before the record was stored is told, and one that joins later can read the record.
type subscribers[K comparable] struct {
	watchers  watchers[K]   // nil if there are none
	history   rememberer[K] // nil without Config.History, else there from the beginning
	waiters   int           // calls of Wait that may sleep, for any key
	waitlists waker[K]      // where they do, or did

	// ignored reports whether none of watchers is told of key, which has this hash. It is nil if
	// there are no watchers. It is no method of theirs, because a call of a generic method by an
	// interface is two calls. Hash and key are apart because the compiler copies a struct of more
	// than four words by way of memory.
	ignored func(hash uint64, key K) bool
}

// watchers has the methods of watchers that every change of a key needs, and
// subscriptions those of the subscriptions at a cell. As these are interfaces, a program
// that does not watch does not link what is behind them.
type (
	watchers[K comparable] interface {
		// notify tells the watchers that k has changed, and reports whether one will
		// look at k.
		notify(rt *root[K], k hkey[K]) (awaited bool)
	}
	subscriptions[K comparable] interface {
		// needed reports whether a watcher has yet to see dead.
		needed(dead *record) bool
		// handedOn is called when another cell of the key has the subscriptions.
		handedOn(rt *root[K])
	}
)

// watchersOf returns the watchers of s, which may be nil.
func watchersOf[K comparable](s *subscribers[K]) *watcherSet[K] {
	if s == nil {
		return nil
	}
	set, _ := s.watchers.(*watcherSet[K])
	return set
}

// in returns a copy of s with the watchers of set instead of its own.
func (set *watcherSet[K]) in(s subscribers[K]) subscribers[K] {
	if set == nil {
		s.watchers, s.ignored = nil, nil
	} else {
		s.watchers, s.ignored = set, set.ignores()
	}
	return s
}

// join adds w to the subscribers.
func (w *watcher[K]) join() {
	// LP(Watch, WatchSnapshot, Stream), the subscription: the subscribers with w are stored.
	w.root.changeSubscribers(func(s subscribers[K]) subscribers[K] { return watchersOf(&s).with(w).in(s) })
}

// leave removes w from the subscribers.
func (w *watcher[K]) leave() {
	w.root.changeSubscribers(func(s subscribers[K]) subscribers[K] { return watchersOf(&s).without(w).in(s) })
}

// waiting adds n to the number of calls that wait in lists.
func (s subscribers[K]) waiting(lists waker[K], n int) subscribers[K] {
	s.waitlists = lists
	s.waiters += n
	return s
}

// changeSubscribers replaces the subscribers by what change makes of them. It is retried
// only when another subscriber has come or gone meanwhile.
func (rt *root[K]) changeSubscribers(change func(subscribers[K]) subscribers[K]) {
	for {
		old := rt.subscribers.Load()
		var now subscribers[K]
		if old != nil {
			now = *old
		}
		now = change(now)
		next := &now
		if now.watchers == nil && now.waiters == 0 && now.history == nil {
			next = nil
		}
		if rt.subscribers.CompareAndSwap(old, next) {
			return
		}
	}
}

// ignores reports whether nobody is told of key. While a call waits for some key, it says no.
func (s *subscribers[K]) ignores(hash uint64, key K) bool {
	return s == nil || s.waiters == 0 && s.ignored(hash, key)
}

// notify tells a that k has changed, and reports whether a watcher will look at k. It
// names the key alone. A watcher reads the key itself: by then the key may hold
// something newer, also when the caller has stalled.
func (rt *root[K]) notify(a *subscribers[K], k hkey[K]) (awaited bool) {
	if a.waiters > 0 {
		a.waitlists.wake(k)
	}
	return a.watchers != nil && a.watchers.notify(rt, k)
}

// notify tells each watcher of k at the cell that the table has now. If that is not the
// cell that the caller has changed, then a later operation on k has told the watchers
// since, or will, also of the death of the cell.
func (set *watcherSet[K]) notify(rt *root[K], k hkey[K]) (awaited bool) {
	var (
		c      *cell[K]
		loaded bool
		meta   *cellMeta[K]
		list   *subscriptionList[K] // of meta
		at     int
	)
	set.each(k, func(w *watcher[K]) {
		if !loaded {
			c, loaded = rt.cells.Load(k), true
		}
		var s *subscription[K]
		if c != nil {
			if now := c.meta.Load(); now != meta {
				meta, list = now, subscriptionsOf(now)
			}
			if s = list.of(w, &at); s == nil && w.stream == nil {
				s, _ = w.subscribe(c, k, &at, 0)
			}
		}
		switch {
		case s == nil: // c has gone since, or its writer subscribes w, or w has lagged
			if w.lagged() {
				w.lag()
			}
		case s.notify():
			awaited = true
		default:
			s.unsubscribe() // its watcher has gone, and may not know this subscription
		}
	})
	return awaited
}

// each calls f for the watchers that are told of k: for one with several topics that
// have k, once for each. S may be nil.
func (s *watcherSet[K]) each(k hkey[K], f func(*watcher[K])) {
	if s == nil {
		return
	}
	for _, w := range s.all {
		f(w)
	}
	if s.single && s.bitmap.has(k.Hash) {
		for _, w := range s.keys.find(k.Hash, &k.Key) {
			f(w)
		}
	}
	for i := range s.groups {
		for _, w := range s.at(&s.groups[i], k.Key) {
			f(w)
		}
	}
}
