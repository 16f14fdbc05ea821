package shardedregistry

import "slices"

// audience is who wants to hear of changes. It is immutable: to change it,
// replace it. Nil stands for nobody.
//
// Everyone who has stored a record loads it then. So whoever had joined before
// the record was stored is told, and whoever joins later can read the record.
type audience[K comparable] struct {
	watchers []*watcher[K] // in the order in which they came
	waiters  int           // calls of Wait that may sleep, for any key
	rooms    ringer[K]     // where they do, or did
}

// with adds a watcher.
func (a audience[K]) with(w *watcher[K]) audience[K] {
	a.watchers = append(slices.Clip(a.watchers), w)
	return a
}

// without removes a watcher.
func (a audience[K]) without(w *watcher[K]) audience[K] {
	a.watchers = slices.DeleteFunc(slices.Clone(a.watchers), func(x *watcher[K]) bool { return x == w })
	return a
}

// waiting adds n to the number of those who wait in rooms.
func (a audience[K]) waiting(rooms ringer[K], n int) audience[K] {
	a.rooms = rooms
	a.waiters += n
	return a
}

// attend replaces the audience by change of it. It is retried only when somebody
// else has come or gone meanwhile.
func (o *root[K]) attend(change func(audience[K]) audience[K]) {
	for {
		old := o.audience.Load()
		var now audience[K]
		if old != nil {
			now = *old
		}
		now = change(now)
		next := &now
		if len(now.watchers) == 0 && now.waiters == 0 {
			next = nil
		}
		if o.audience.CompareAndSwap(old, next) {
			return
		}
	}
}

// announce tells a that k has changed, and reports whether a watcher will look
// at k. It names the key alone. What is there is for those to see who look: by
// then it may be something newer, also when the caller has stalled.
//
// Watchers sit at the cell that the table has now. If that is not the cell that
// the caller has changed, then a later operation on k has told them since, or
// will, and so have those who had to be told that the cell had died.
func (o *root[K]) announce(a *audience[K], k hkey[K]) (awaited bool) {
	if a.waiters > 0 {
		a.rooms.ring(k)
	}
	if len(a.watchers) == 0 {
		return false
	}
	c := o.cells.Load(k)
	for i, w := range a.watchers {
		if w.skips(k) {
			continue
		}
		var s *seat[K]
		switch {
		case c == nil:
		case w.flow == nil:
			s, _ = c.seat(k, w, i, 0)
		default:
			s = c.side.Load().seat(w, i)
		}
		if s == nil { // c has gone since, or who has changed it seats w, or w has lagged
			if w.lagged() {
				w.lag()
			}
			continue
		}
		if s.call() {
			awaited = true
		} else {
			o.unseat(s) // its watcher has gone, and may not know this seat
		}
	}
	return awaited
}
