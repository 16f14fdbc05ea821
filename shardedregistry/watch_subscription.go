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

	// latest is the one that was put down last, or nil. Those who tell of a change
	// replace one that was taken by a new one, by CAS; one that was not stays
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

	// stage only grows, and the watcher alone stores it. Who has stored a record
	// and then finds a notification waiting is sure that the watcher will find the record.
	// Who finds it done is sure that the watcher has read one, and needs the table no
	// more for it.
	stage atomics.Uint32
}

// notify makes the watcher of s look at the key after now, and reports whether it
// will; if not, it has gone. Only who finds no notification that waits to be taken puts
// one down, so there are no more of them than goroutines that have begun to.
//
// Who puts down a notification and stalls would leave others in doubt whether it is on
// the inbox and its watcher awake; so it is known to them only when it is and the
// waker has fired, and until then each may put down its own.
//
// While a notification that s shows is not done, none that is replaces it: a watcher takes
// one after the other, so what was not waiting before mine was put down, or while
// mine is not done, was taken before mine.
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

// waits reports whether p is in an inbox, and was put there before its watcher was
// woken.
func (n *notification[K]) waits() bool { return n != nil && n.stage.Load() == waiting }

// subscribe returns the subscription of w at c, and whether it has added it, because there was
// none. A loop over Stream will take from a new one what is newer than pos. At says
// where the subscription probably is. It returns nil if c takes no subscriptions any more.
func (c *cell[K]) subscribe(k hkey[K], w *watcher[K], at int, pos Version) (s *subscription[K], isNew bool) {
	var fresh *subscription[K]
	for { // until no other subscription comes or goes between looking and adding
		now := c.meta.Load()
		if s := now.subscription(w, at); s != nil {
			return s, false
		}
		if now != nil && now.gone {
			return nil, false
		}
		if fresh == nil {
			fresh = newSubscription(w, k, pos)
		}
		if c.meta.CompareAndSwap(now, now.with(fresh)) {
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

// subscription returns the subscription of w, or nil.
func (m *cellMeta[K]) subscription(w *watcher[K], at int) *subscription[K] {
	if m == nil {
		return nil
	}
	if at < len(m.subscriptions) && m.subscriptions[at].watcher == w {
		return m.subscriptions[at]
	}
	for _, s := range m.subscriptions {
		if s.watcher == w {
			return s
		}
	}
	return nil
}

// unsubscribe takes s away from the cell that has it. A creator that hands s on
// meanwhile will find that the watcher has gone, and do the same: see create.
func (rt *root[K]) unsubscribe(s *subscription[K]) {
	for { // until no other subscription comes or goes between looking and removing
		c := rt.cells.Load(s.key)
		if c == nil {
			return
		}
		now := c.meta.Load()
		if !now.has(s) || c.meta.CompareAndSwap(now, now.without(s)) {
			return
		}
	}
}

// clear takes s away, unless somebody has, and what was kept for its watcher,
// which has left, or which has lagged, or whose key has gone.
func (rt *root[K]) clear(s *subscription[K]) {
	rt.unsubscribe(s)
	if s.watcher.stream != nil {
		rt.relax(s.key)
	}
	rt.tidy(s.key)
}

// subscribers are who wants to hear of changes. It is immutable: to change it,
// replace it. Nil stands for nobody.
//
// Everyone who has stored a record loads it then. So whoever had joined before
// the record was stored is told, and whoever joins later can read the record.
type subscribers[K comparable] struct {
	watchers  []*watcher[K] // in the order in which they came
	waiters   int           // calls of Wait that may sleep, for any key
	waitlists waker[K]      // where they do, or did
}

// with adds a watcher.
func (s subscribers[K]) with(w *watcher[K]) subscribers[K] {
	s.watchers = append(slices.Clip(s.watchers), w)
	return s
}

// without removes a watcher.
func (s subscribers[K]) without(w *watcher[K]) subscribers[K] {
	s.watchers = slices.DeleteFunc(slices.Clone(s.watchers), func(x *watcher[K]) bool { return x == w })
	return s
}

// waiting adds n to the number of those who wait in waitlists.
func (s subscribers[K]) waiting(rooms waker[K], n int) subscribers[K] {
	s.waitlists = rooms
	s.waiters += n
	return s
}

// changeSubscribers replaces the subscribers by change of it. It is retried only when somebody
// else has come or gone meanwhile.
func (rt *root[K]) changeSubscribers(change func(subscribers[K]) subscribers[K]) {
	for {
		old := rt.subscribers.Load()
		var now subscribers[K]
		if old != nil {
			now = *old
		}
		now = change(now)
		next := &now
		if len(now.watchers) == 0 && now.waiters == 0 {
			next = nil
		}
		if rt.subscribers.CompareAndSwap(old, next) {
			return
		}
	}
}

// notify tells a that k has changed, and reports whether a watcher will look
// at k. It names the key alone. What is there is for those to see who look: by
// then it may be something newer, also when the caller has stalled.
//
// Watchers sit at the cell that the table has now. If that is not the cell that
// the caller has changed, then a later operation on k has told them since, or
// will, and so have those who had to be told that the cell had died.
func (rt *root[K]) notify(a *subscribers[K], k hkey[K]) (awaited bool) {
	if a.waiters > 0 {
		a.waitlists.wake(k)
	}
	if len(a.watchers) == 0 {
		return false
	}
	c := rt.cells.Load(k)
	for i, w := range a.watchers {
		if w.skips(k) {
			continue
		}
		var s *subscription[K]
		switch {
		case c == nil:
		case w.stream == nil:
			s, _ = c.subscribe(k, w, i, 0)
		default:
			s = c.meta.Load().subscription(w, i)
		}
		if s == nil { // c has gone since, or who has changed it subscribes w, or w has lagged
			if w.lagged() {
				w.lag()
			}
			continue
		}
		if s.notify() {
			awaited = true
		} else {
			rt.unsubscribe(s) // its watcher has gone, and may not know this subscription
		}
	}
	return awaited
}
