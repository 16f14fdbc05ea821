package atomicbreaker

import (
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A cell is the breaker of one key. When it dies, its word is a tombstone and never
// changes again.
type cell struct {
	core // first, so that a *core of a cell can be converted back

	// since is nil until the cell is dead. Then it is the era from which on
	// departures of the key are those of later cells: its own if the cell has
	// changed its mode, otherwise the last one at that time. By CAS of whoever
	// helps to remove the cell first.
	since atomics.Pointer[era]
}

// An entry is a cell with its key, which never changes.
type entry[K comparable] struct {
	cell // first, so that it can be converted back
	key  K
}

// cellOf converts the core of a cell back.
func cellOf(c *core) *cell {
	// Safety: only cells have settings with an owner, and a cell's core is its
	// first field.
	return (*cell)(unsafe.Pointer(c))
}

// keyOf returns the key of a cell of this book.
func (b *book[K]) keyOf(c *cell) K {
	// Safety: a book makes its cells as the first field of an entry.
	return (*entry[K])(unsafe.Pointer(c)).key
}

// lookup returns the cell of a key, or nil. The cell may be dead, now or at any
// time; then its word says so to all who go on to use it, and they remove it
// and look again.
func (b *book[K]) lookup(k K, hash uint64) *cell {
	if b.free(hash) {
		return nil
	}
	return b.find(k)
}

// find is lookup in the table.
func (b *book[K]) find(k K) *cell {
	if c := b.cells.Load(k); c != nil {
		return &c.cell
	}
	return nil
}

// obtain is like lookup but inserts a pristine cell if there is none, with the
// given settings or, if they are nil, those of the key. It returns nil for a
// key that is not equal to itself, which could never be found again.
func (b *book[K]) obtain(k K, hash uint64, s *settings) *cell {
	if c := b.lookup(k, hash); c != nil || !b.keys.Findable(k) {
		return c
	}
	if s == nil {
		s = b.settingsFor(k)
	}
	fresh := &entry[K]{key: b.own(k)}
	b.linking(&fresh.cell, s, hash)
	c, loaded := b.cells.LoadOrStore(fresh.key, fresh)
	if loaded {
		b.unlinked(hash)
	}
	return &c.cell
}

// linking completes a cell and takes it into the counts, before it is in the
// table.
func (b *pages) linking(fresh *cell, s *settings, hash uint64) {
	if b.quota != nil {
		b.quota.census.see(hash)
	}
	fresh.set.Store(s)
	if b.keepsIdle() != 0 {
		fresh.touched.Store(int64(b.now())) // it may stay pristine
	}
	if b.stripes.Load() == nil {
		b.stripes.CompareAndSwap(nil, new([stripes]atomics.Uint32))
	}
	b.stripes.Load()[stripeOf(hash)].Add(1)
	b.linked.Add(1)
}

// unlinked takes a cell out of the counts, once it is out of the table.
func (b *pages) unlinked(hash uint64) {
	b.linked.Add(-1)
	b.stripes.Load()[stripeOf(hash)].Add(^uint32(0))
}

// finish ends an operation on a living cell. What it does for other keys comes
// last, as it tells of them.
func (b *pages) finish(c *cell, did step) {
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
func (b *pages) relax(c *cell, did step) {
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
func (b *pages) tidy(c *cell, w word) {
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
func (b *pages) keepsIdle() time.Duration { return b.settings().idle }

// now returns the time since the epoch.
func (b *pages) now() time.Duration { return atomics.Since(b.epoch) }

func (b *pages) touch(c *cell) {
	if b.keepsIdle() != 0 {
		c.touch(b.now(), 0)
	}
}

// retire kills and removes a cell that is still pristine, or marked, and
// reports whether it was. A cell with events that were not delivered stays: so
// they come before those of the key's next cell. Whoever delivers the last
// retires it.
func (b *pages) retire(c *cell, w word) bool {
	if b.of.hears && !c.toldAllUpTo(w) {
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
func (b *pages) remove(c *cell) {
	if b.outdated() {
		return // it may be sealed; see group_events.go
	}
	if word(c.word.Load()).gen() == 0 {
		c.since.CompareAndSwap(nil, b.eras.now.Load())
	} else {
		if c.since.Load() == nil {
			c.since.CompareAndSwap(nil, &era{hash: b.shelf.hashOf(c), home: &b.absence})
		}
		b.eras.begin(c.since.Load())
	}
	if b.shelf.drop(c) {
		b.unlinked(b.shelf.hashOf(c))
	}
}
