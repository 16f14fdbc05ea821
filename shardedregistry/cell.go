package shardedregistry

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// cell is one life of one key, from its creation to its deletion. A key that
// is created again gets another cell. Cells are small rather than padded: four
// share a cache line, which may cost readers of a key whose neighbour changes
// all the time, and keeps more of a large registry in the caches.
type cell[K comparable] struct {
	key K // normalised

	// rec is never nil once the cell is in the table. Writers of the key replace
	// a live record by CAS; a dead one is final. Everybody reads.
	rec atomics.Pointer[record]

	// meta is what few cells have besides, or nil. Replaced by CAS by those who
	// tell watchers of a change, by watchers that leave, and by a deleter that
	// leaves the cell in the table.
	meta atomics.Pointer[cellMeta[K]]
}

// named returns the key of c, whose hash is hash.
func (c *cell[K]) named(hash uint64) hkey[K] { return hkey[K]{Hash: hash, Key: c.key} }

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

func (m *cellMeta[K]) now() cellMeta[K] {
	if m == nil {
		return cellMeta[K]{}
	}
	return *m
}

// has reports whether s is at the cell.
func (m *cellMeta[K]) has(s *subscription[K]) bool {
	return m != nil && slices.Contains(m.subscriptions, s)
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

// ends returns a copy of d that takes no subscription any more: its cell leaves the
// table.
func (m *cellMeta[K]) ends() *cellMeta[K] {
	next := m.now()
	next.gone = true
	return &next
}

// loadLive returns the cell of k and its record, or nil and nil if k is
// absent.
//
// A dead cell that is still linked means absent, even if the table holds
// another by now: it died before the table was read, and then k was absent at
// that moment, or between that and the reading of its record, and then k was
// absent at the moment it died.
func (rt *root[K]) loadLive(k hkey[K]) (*cell[K], *record) {
	c := rt.cells.Load(k)
	if c == nil {
		return nil, nil
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return nil, nil
		}
	}
	return c, rec
}

// live returns rec, which a cell holds, or nil if it is dead.
func (rt *root[K]) live(rec *record) *record {
	rt.date(rec)
	if rec.dead() {
		return nil
	}
	return rec
}

// publish puts fresh, a new cell of k that holds rec, into the table unless k is
// present. It returns the cell that is there, and its record if that is another.
//
// The version is above all earlier ones of k. Every cell of k that has left the
// table did so under the mutex that is held here, either unlinked, after floor
// had been raised to its last version, or replaced here, by a cell that started
// above its last version.
func (rt *root[K]) publish(k hkey[K], fresh *cell[K], rec *record) (c *cell[K], present *record) {
	var (
		s     = rt.installShard(k.Hash)
		heirs []*subscription[K]
		late  bool
	)
	for { // again only when a deleter was late, which is then no more
		late = false
		c = rt.cells.Compute(k, func(now *cell[K]) *cell[K] {
			last := Version(s.floor.Load())
			if now != nil {
				present = now.rec.Load()
				if !present.dead() {
					return now
				}
				if rt.transitions() {
					if late = rt.history(present).published.Load() == 0; late {
						return now
					}
					last = 0 // so that the versions of a chain are consecutive
				}
				last = max(last, present.version())
				rt.follow(rec, present)
				heirs = fresh.succeed(now, rt.transitions())
			}
			rec.word |= firstWord(last)
			s.live.Add(1)
			return fresh
		})
		if !late {
			break
		}
		rt.date(present)
		rt.enqueue(rt.subscribers.Load(), k, c, present)
	}
	for _, s := range heirs {
		if s.watcher.unreachable() { // perhaps before it could find s here
			rt.unsubscribe(s)
		}
	}
	return c, present
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

// kill deletes k, whose cell c holds the live record old, and reports whether
// it did; if not, the record has changed. It takes effect when the dead record
// is stored. What follows is housekeeping that no other operation waits for:
// meanwhile a creator may replace the dead cell.
func (rt *root[K]) kill(k hkey[K], c *cell[K], old *record) bool {
	rt.check(k, old)
	// Asked after old was read: a plain record deletes only what was there
	// before any collector joined that might miss it.
	dead := rt.tombstone(rt.snapshotting(), old)
	if !c.rec.CompareAndSwap(old, dead) {
		return false
	}
	rt.shard(k.Hash).live.Add(-1)
	rt.bury(k, c, old, dead)
	return true
}

// bury does what is left to do when dead has been stored and counted. A dead
// cell that a snapshot or a watcher needs stays in the table; the last of these
// will unlink it.
func (rt *root[K]) bury(k hkey[K], c *cell[K], old, dead *record) {
	if needed := rt.changed(k, c, old, dead); needed || !rt.closeCell(c, dead) {
		rt.keepInTable(k, c)
	} else {
		rt.unlink(k, c, dead)
	}
	rt.check(k, dead)
}

// changed is called by everyone who has stored rec in the cell c of k in place of
// old, or as the first one there, and reports whether a snapshot in progress needs what k
// held before, or a watcher will look at k. The order matters: until rec is dated
// the change has not happened.
func (rt *root[K]) changed(k hkey[K], c *cell[K], old, rec *record) (needed bool) {
	if rec.word&datedBit != 0 {
		needed = rt.settle(rec)
	}
	if rt.constraints != nil {
		rt.constraints.unpin(k, old.indexKeys(), rec.indexKeys())
	}
	rt.detectReentry(k)
	s := rt.subscribers.Load()
	if rt.transitions() {
		rt.enqueue(s, k, c, rec)
	}
	if s != nil && rt.notify(s, k) {
		needed = true
	}
	return needed
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

// needed reports whether somebody who sits there has yet to see dead.
func (m *cellMeta[K]) needed(dead *record) bool {
	for _, s := range m.subscriptions {
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

// closeCell makes sure that no subscription is added to c, which is dead and told, before it
// is unlinked, and reports whether it may be. It is retried only when a subscription has
// come or gone. Without Config.Transitions whoever comes late may add one in vain.
func (rt *root[K]) closeCell(c *cell[K], dead *record) bool {
	if !rt.transitions() {
		return true
	}
	for {
		now := c.meta.Load()
		switch {
		case now == nil:
			if c.meta.CompareAndSwap(nil, rt.shut) {
				return true
			}
		case now.gone:
			return true
		case now.needed(dead):
			return false
		case c.meta.CompareAndSwap(now, now.ends()):
			return true
		}
	}
}

// unlink takes the dead cell c of k out of the table, if no creator has
// replaced it. Floor goes first, so that whoever finds k absent finds it raised.
func (rt *root[K]) unlink(k hkey[K], c *cell[K], dead *record) {
	s, version := rt.shard(k.Hash), uint64(dead.version())
	for { // until no other deleter raises it between the two lines
		floor := s.floor.Load()
		if floor >= version || s.floor.CompareAndSwap(floor, version) {
			break
		}
	}
	rt.cells.CompareAndDelete(k, c)
}
