package shardedregistry

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// side is what a cell has besides its record, and most cells have none. It is
// immutable: to change it, replace it.
type side[K comparable] struct {
	// spelled is how the key was given to the call that created the cell, or
	// nil if that is how it is stored.
	spelled *K

	// seats are those of the watchers that were told of a change of the key,
	// mostly in the order of the audience.
	seats []*seat[K]

	// left says that the cell is dead, that its deleter has told all who had to
	// be told, and that it has left the cell in the table for those who need it.
	left bool

	// gone says that the cell is dead, and has left the table or is about to: it
	// takes no seat any more. Only with Config.Transitions.
	gone bool
}

// seat is what connects one watcher and one key. The cells that follow one
// another in the table hand it on.
type seat[K comparable] struct {
	watcher *watcher[K]
	key     hkey[K]

	// slip is the one that was put down last, or nil. Those who tell of a change
	// replace one that was taken by a new one, by CAS; one that was not stays
	// until it is. The watcher reads.
	slip atomics.Pointer[slip[K]]

	// What follows belongs to the watcher's goroutine.
	known bool    // it is in the watcher's list
	shown bool    // the watcher has shown the key, and not its deletion since
	last  Version // that the watcher has seen
}

// The stages of a slip.
const (
	waiting uint32 = iota // it is on the pile, or about to be put there
	taken                 // its watcher is about to look
	done                  // its watcher has looked
)

// slip asks a watcher to look at a key. It is put on the watcher's pile once.
type slip[K comparable] struct {
	seat *seat[K]
	next *slip[K] // below it on the pile; after it was taken, the watcher's

	// stage only grows, and the watcher alone stores it. Who has stored a record
	// and then finds a slip waiting is sure that the watcher will find the record.
	// Who finds it done is sure that the watcher has read one, and needs the table no
	// more for it.
	stage atomics.Uint32
}

// call makes the watcher of s look at the key after now, and reports whether it
// will; if not, it has gone. Only who finds no slip that waits to be taken puts
// one down, so there are no more of them than goroutines that have begun to.
//
// Who puts down a slip and stalls would leave others in doubt whether it is on
// the pile and its watcher awake; so it is known to them only when it is and the
// bell was rung, and until then each may put down its own.
//
// While a slip that s shows is not done, none that is replaces it: a watcher takes
// one after the other, so what was not waiting before mine was put down, or while
// mine is not done, was taken before mine.
func (s *seat[K]) call() bool {
	old := s.slip.Load()
	if old.waits() {
		return true
	}
	mine := &slip[K]{seat: s}
	if !s.watcher.put(mine) {
		return false
	}
	s.watcher.wake()
	for !s.slip.CompareAndSwap(old, mine) { // until it is there, or one that is as good
		if old = s.slip.Load(); old.waits() || mine.stage.Load() == done {
			break
		}
	}
	return true
}

// waits reports whether p is on a pile, and was put there before its watcher was
// woken.
func (p *slip[K]) waits() bool { return p != nil && p.stage.Load() == waiting }

// seat returns the seat of w at c, and whether it has added it, because there was
// none. A loop over Stream will take from a new one what is newer than pos. At says
// where the seat probably is. It returns nil if c takes no seats any more.
func (c *cell[K]) seat(k hkey[K], w *watcher[K], at int, pos Version) (s *seat[K], isNew bool) {
	var fresh *seat[K]
	for { // until no other seat comes or goes between looking and adding
		now := c.side.Load()
		if s := now.seat(w, at); s != nil {
			return s, false
		}
		if now != nil && now.gone {
			return nil, false
		}
		if fresh == nil {
			fresh = newSeat(w, k, pos)
		}
		if c.side.CompareAndSwap(now, now.with(fresh)) {
			return fresh, true
		}
	}
}

func newSeat[K comparable](w *watcher[K], k hkey[K], pos Version) *seat[K] {
	if w.flow != nil {
		return &newPerch(w, k, pos).seat
	}
	return &seat[K]{watcher: w, key: k}
}

// seat returns the seat of w, or nil.
func (d *side[K]) seat(w *watcher[K], at int) *seat[K] {
	if d == nil {
		return nil
	}
	if at < len(d.seats) && d.seats[at].watcher == w {
		return d.seats[at]
	}
	for _, s := range d.seats {
		if s.watcher == w {
			return s
		}
	}
	return nil
}

// has reports whether s is at the cell.
func (d *side[K]) has(s *seat[K]) bool { return d != nil && slices.Contains(d.seats, s) }

func (d *side[K]) now() side[K] {
	if d == nil {
		return side[K]{}
	}
	return *d
}

// with returns a copy with s.
func (d *side[K]) with(s *seat[K]) *side[K] {
	next := d.now()
	next.seats = append(slices.Clip(next.seats), s)
	return &next
}

// without returns a copy without s, or nil if nothing is left.
func (d *side[K]) without(s *seat[K]) *side[K] {
	next := *d
	next.seats = slices.DeleteFunc(slices.Clone(d.seats), func(x *seat[K]) bool { return x == s })
	if len(next.seats) == 0 && next.spelled == nil && !next.left && !next.gone {
		return nil
	}
	return &next
}

// succeed gives c, which will replace a dead cell in the table, the seats of
// that, and returns them. A watcher that has not yet looked at the deletion
// will find what c holds: a key that comes and goes takes one seat. If there are
// transitions, the dead cell takes no seat any more. That is retried only when one
// has come or gone meanwhile.
func (c *cell[K]) succeed(dead *cell[K], transitions bool) []*seat[K] {
	old := dead.side.Load()
	for transitions && !dead.side.CompareAndSwap(old, old.ends()) {
		old = dead.side.Load()
	}
	if old == nil || len(old.seats) == 0 {
		return nil
	}
	next := c.side.Load().now()
	next.seats = old.seats
	c.side.Store(&next)
	return old.seats
}

// unseat takes s away from the cell that has it. A creator that hands s on
// meanwhile will find that the watcher has gone, and do the same: see create.
func (o *root[K]) unseat(s *seat[K]) {
	for { // until no other seat comes or goes between looking and removing
		c := o.cells.Load(s.key)
		if c == nil {
			return
		}
		now := c.side.Load()
		if !now.has(s) || c.side.CompareAndSwap(now, now.without(s)) {
			return
		}
	}
}

// clear takes s away, unless somebody has, and what was kept for its watcher,
// which has left, or which has lagged, or whose key has gone.
func (o *root[K]) clear(s *seat[K]) {
	o.unseat(s)
	if s.watcher.flow != nil {
		o.relax(s.key)
	}
	o.tidy(s.key)
}

// leave is called by the deleter of k's cell c, instead of unlinking it, when it
// has told all who had to be told.
func (o *root[K]) leave(k hkey[K], c *cell[K]) {
	for { // until no seat comes or goes between the two lines
		now := c.side.Load()
		next := now.now()
		next.left = true
		if c.side.CompareAndSwap(now, &next) {
			break
		}
	}
	o.tidy(k)
}

// tidy unlinks the cell of k if it is dead and nobody needs it any more. It is
// called by all who may be the last: the deleter when it has left the cell, a
// watcher when it has looked, a taker when it has left. Each writes that
// first and then reads what the others write, so that the last one finds all of
// it.
func (o *root[K]) tidy(k hkey[K]) {
	c := o.cells.Load(k)
	if c == nil {
		return
	}
	rec := c.rec.Load()
	if !rec.dead() {
		return
	}
	now := c.side.Load()
	if now == nil || !now.left {
		return
	}
	if now.needed(rec) {
		return
	}
	if (rec.mark&datedBit == 0 || !o.settle(rec)) && o.part(c, rec) {
		o.unlink(k, c, rec)
	}
}
