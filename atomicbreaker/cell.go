package atomicbreaker

import (
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A cell is the breaker of one key. Its core's settings and its key never
// change. When it dies, its word is a tombstone and never changes again.
type cell[K comparable] struct {
	core // first, so that a *core of a cell can be converted back
	key  K

	// since is nil until the cell is dead. Then it is the era from which on
	// departures of the key are those of later cells: its own if the cell has
	// changed its mode, otherwise the last one at that time. By CAS of whoever
	// helps to remove the cell first.
	since atomics.Pointer[era]
}

// cellOf converts the core of a cell back.
func (b *book[K]) cellOf(c *core) *cell[K] {
	// Safety: only cells of this book have settings owned by it, and a cell's
	// core is its first field.
	return (*cell[K])(unsafe.Pointer(c))
}

// lookup returns the cell of a key, or nil. The cell may be dead, now or at any
// time; then its word says so to all who go on to use it, and they remove it
// and look again.
func (b *book[K]) lookup(k K, hash uint64) *cell[K] {
	if b.free(hash) {
		return nil
	}
	return b.cells.Load(k)
}

// obtain is like lookup but inserts a pristine cell if there is none, with the
// given settings or, if they are nil, those of the key. It returns nil for a
// key that is not equal to itself, which could never be found again.
func (b *book[K]) obtain(k K, hash uint64, s *settings) *cell[K] {
	if c := b.lookup(k, hash); c != nil || !b.keys.Findable(k) {
		return c
	}
	if s == nil {
		s = b.settingsFor(k)
	}
	if b.quota != nil {
		b.quota.census.see(hash)
	}
	fresh := &cell[K]{key: b.own(k)}
	fresh.set.Store(s)
	if b.keepsIdle() != 0 {
		fresh.touched.Store(int64(b.now())) // it may stay pristine
	}
	b.linking(fresh)
	c, loaded := b.cells.LoadOrStore(fresh.key, fresh)
	if loaded {
		b.unlinked(fresh)
		return c
	}
	return fresh
}

// linking takes a cell into the counts, before it is in the table.
func (b *book[K]) linking(c *cell[K]) {
	if b.stripes.Load() == nil {
		b.stripes.CompareAndSwap(nil, new([stripes]atomics.Uint32))
	}
	b.stripes.Load()[stripeOf(b.hash(c.key, 0))].Add(1)
	b.linked.Add(1)
}

// unlinked takes a cell out of the counts, once it is out of the table.
func (b *book[K]) unlinked(c *cell[K]) {
	b.linked.Add(-1)
	b.stripes.Load()[stripeOf(b.hash(c.key, 0))].Add(^uint32(0))
}

// finish ends an operation on a living cell. What it does for other keys comes
// last, as it tells of them.
func (b *book[K]) finish(c *cell[K], did step) {
	if did.did&wrote != 0 {
		b.tidy(c, did.to)
	}
	b.relax(c, did)
	did.owed.deliver()
	if b.count() >= b.sweepAt.Load() {
		b.maybeSweep()
	}
	if did.did&withheld != 0 {
		b.reclaim()
	}
}

// relax retires a cell that is kept for its windows alone when these are empty.
// It looks into them only when nothing can be left there, so that a success
// need not sum.
func (b *book[K]) relax(c *cell[K], did step) {
	w := did.to
	if w.mode() != closed || !w.watched() || w != w.flagged() {
		return
	}
	if r := c.set.Load().rules; len(r.windows) != 0 && (did.at == 0 || c.idle(did.at) < r.span) {
		return
	}
	if was := word(c.word.Load()); was.living() == w {
		b.leave(c, was)
	}
}

// tidy follows every write of a cell's word. It retires the cell if that made
// it pristine and idle cells are not kept.
func (b *book[K]) tidy(c *cell[K], w word) {
	if !w.pristine() {
		return
	}
	if b.keepsIdle() == 0 {
		b.retire(c, w)
	} else {
		b.touch(c)
	}
}

// keepsIdle returns how long cells are kept that are pristine.
func (b *book[K]) keepsIdle() time.Duration { return b.settings().config.IdleTimeout }

// now returns the time since the epoch.
func (b *book[K]) now() time.Duration { return atomics.Since(b.epoch) }

func (b *book[K]) touch(c *cell[K]) {
	if b.keepsIdle() != 0 {
		c.touch(b.now(), 0)
	}
}

// retire kills and removes a cell that is still pristine, or marked, and
// reports whether it was. A cell with events that were not delivered stays: so
// they come before those of the key's next cell. Whoever delivers the last
// retires it.
func (b *book[K]) retire(c *cell[K], w word) bool {
	if b.group.hears && !c.toldAllUpTo(w) {
		return false
	}
	if !c.word.CompareAndSwap(uint64(w), uint64(w.living().stay().bury())) {
		return false
	}
	b.remove(c)
	return true
}

// remove takes a dead cell out of the table. Everyone who needs its place
// helps, so that nobody waits for the caller who killed it. When it returns,
// c.since is set and the cell is out of the table, unless the book is outdated.
func (b *book[K]) remove(c *cell[K]) {
	if b.outdated() {
		return // it may be sealed; see tell.go
	}
	if word(c.word.Load()).gen() == 0 {
		c.since.CompareAndSwap(nil, b.eras.now.Load())
	} else {
		if c.since.Load() == nil {
			c.since.CompareAndSwap(nil, &era{hash: b.hash(c.key, 0), home: &b.absence})
		}
		b.eras.begin(c.since.Load())
	}
	if b.cells.CompareAndDelete(c.key, c) {
		b.unlinked(c)
	}
}
