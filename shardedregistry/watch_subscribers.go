package shardedregistry

import "slices"

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
