package shardedregistry

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// cellMeta is what a cell has besides its record, and most cells have none. It is
// immutable: to change it, replace it.
type cellMeta[K comparable] struct {
	// spelled is how the key was given to the call that created the cell, or
	// nil if that is how it is stored.
	spelled *K

	// subscriptions are those of the watchers that were told of a change of the key,
	// mostly in the order of the subscribers.
	subscriptions []*subscription[K]

	// kept says that the cell is dead, that its deleter has told all who had to
	// be told, and that it has left the cell in the table for those who need it.
	kept bool

	// gone says that the cell is dead, and has left the table or is about to: it
	// takes no subscription any more. Only with Config.Transitions.
	gone bool
}

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
	s.watcher.wake()
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

// has reports whether s is at the cell.
func (m *cellMeta[K]) has(s *subscription[K]) bool {
	return m != nil && slices.Contains(m.subscriptions, s)
}

func (m *cellMeta[K]) now() cellMeta[K] {
	if m == nil {
		return cellMeta[K]{}
	}
	return *m
}

// with returns a copy with s.
func (m *cellMeta[K]) with(s *subscription[K]) *cellMeta[K] {
	next := m.now()
	next.subscriptions = append(slices.Clip(next.subscriptions), s)
	return &next
}

// without returns a copy without s, or nil if nothing is left.
func (m *cellMeta[K]) without(s *subscription[K]) *cellMeta[K] {
	next := *m
	next.subscriptions = slices.DeleteFunc(slices.Clone(m.subscriptions), func(x *subscription[K]) bool { return x == s })
	if len(next.subscriptions) == 0 && next.spelled == nil && !next.kept && !next.gone {
		return nil
	}
	return &next
}

// succeed gives c, which will replace a dead cell in the table, the subscriptions of
// that, and returns them. A watcher that has not yet looked at the deletion
// will find what c holds: a key that comes and goes takes one subscription. If there are
// transitions, the dead cell takes no subscription any more. That is retried only when one
// has come or gone meanwhile.
func (c *cell[K]) succeed(dead *cell[K], transitions bool) []*subscription[K] {
	old := dead.meta.Load()
	for transitions && !dead.meta.CompareAndSwap(old, old.ends()) {
		old = dead.meta.Load()
	}
	if old == nil || len(old.subscriptions) == 0 {
		return nil
	}
	next := c.meta.Load().now()
	next.subscriptions = old.subscriptions
	c.meta.Store(&next)
	return old.subscriptions
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

// keepInTable is called by the deleter of k's cell c, instead of unlinking it, when it
// has told all who had to be told.
func (rt *root[K]) keepInTable(k hkey[K], c *cell[K]) {
	for { // until no subscription comes or goes between the two lines
		now := c.meta.Load()
		next := now.now()
		next.kept = true
		if c.meta.CompareAndSwap(now, &next) {
			break
		}
	}
	rt.tidy(k)
}

// tidy unlinks the cell of k if it is dead and nobody needs it any more. It is
// called by all who may be the last: the deleter when it has left the cell, a
// watcher when it has looked, a collector when it has left. Each writes that
// first and then reads what the others write, so that the last one finds all of
// it.
func (rt *root[K]) tidy(k hkey[K]) {
	c := rt.cells.Load(k)
	if c == nil {
		return
	}
	rec := c.rec.Load()
	if !rec.dead() {
		return
	}
	now := c.meta.Load()
	if now == nil || !now.kept {
		return
	}
	if now.needed(rec) {
		return
	}
	if (rec.word&datedBit == 0 || !rt.settle(rec)) && rt.closeCell(c, rec) {
		rt.unlink(k, c, rec)
	}
}
