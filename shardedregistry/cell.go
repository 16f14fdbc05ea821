package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// cell is one life of one key, from its creation to its deletion. A key that
// is created again gets another cell. Cells are small rather than padded: four
// share a cache line, which may cost readers of a key whose neighbour changes
// all the time, and keeps more of a large registry in the caches. The first record is an object of
// its own: in one with the cell, its value would live as long as the key.
type cell[K comparable, V any] struct {
	key K // normalised

	// rec is never nil once the cell is in the table. Writers of the key replace
	// a live record by CAS; a dead one is final. A transaction replaces what it has
	// read by an intent, which any operation replaces by what the transaction has
	// made of it. Everybody reads.
	rec atomics.Pointer[record[K, V]]

	// meta is what few cells have besides, or nil. Replaced by CAS by tellers, which
	// tell watchers of a change, by watchers that leave, and by a deleter that
	// leaves the cell in the table.
	meta atomics.Pointer[cellMeta[K, V]]
}

// named returns the key of c, whose hash is hash.
func (c *cell[K, V]) named(hash uint64) hkey[K] { return hkey[K]{Hash: hash, Key: c.key} }

// cellMeta is what a cell has besides its record, and most cells have none. It is
// immutable: to change it, replace it.
type cellMeta[K comparable, V any] struct {
	// spelled is how the key was given to the call that created the cell, or
	// nil if that is how it is stored.
	spelled *K

	// subscriptions are those of the watchers that were told of a change of the key,
	// or nil.
	subscriptions subscriptionList[K, V]

	// kept says that the cell is dead, that its deleter has told all watchers that I11
	// in DESIGN.md names, and that it has left the cell in the table for them.
	kept bool
}

func (m *cellMeta[K, V]) now() cellMeta[K, V] {
	if m == nil {
		return cellMeta[K, V]{}
	}
	return *m
}

// loadLive returns the cell of k and its record, or nil and nil if k is
// absent.
//
// A dead cell means absent, even if the table holds another by now. If it died before the table
// was read, k was absent at that moment. If it died later, k was absent when it died.
func (rt *root[K, V]) loadLive(k hkey[K]) (*cell[K, V], *record[K, V]) {
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

// loadToChange is loadLive for an operation that will replace the record.
func (rt *root[K, V]) loadToChange(k hkey[K]) (*cell[K, V], *record[K, V]) {
	c := rt.cells.Load(k)
	if c == nil {
		return nil, nil
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(c.cleared(rec)); rec == nil {
			return nil, nil
		}
	}
	return c, rec
}

// live returns rec, which a cell holds, or nil if it is dead. Where rec is an intent, it
// returns what that stands for.
func (rt *root[K, V]) live(rec *record[K, V]) *record[K, V] {
	if rec.word&(datedBit|deadBit) == 0 {
		return rec
	}
	if rec = rt.resolved(rec); rec == nil {
		return nil
	}
	rt.date(rec)
	if rec.dead() {
		return nil
	}
	return rec
}

// resolved returns what rec, which a cell holds, stands for: itself, if it is no intent.
// It may be nil where it is one.
func (rt *root[K, V]) resolved(rec *record[K, V]) *record[K, V] {
	if !rec.intent() {
		return rec
	}
	return rec.use().outcome()
}

// held returns what c holds, dead or alive, or nil if it holds nothing yet, or never.
func (rt *root[K, V]) held(c *cell[K, V]) *record[K, V] {
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) == 0 {
		return rec
	}
	if rec = rt.resolved(rec); rec != nil {
		rt.date(rec)
	}
	return rec
}

// cleared returns what c holds after rec, if that is an intent: its transaction is
// finished, in case its owner has stalled. Operations that are about to store into c call it
// when they have read rec there.
func (c *cell[K, V]) cleared(rec *record[K, V]) *record[K, V] {
	if !rec.intent() {
		return rec
	}
	rec.use().finish()
	return c.rec.Load()
}

// publish puts fresh, a new cell of k that holds rec, into the table unless k is
// present. It returns the cell that is there, and its record if that is another.
//
// The version is above all earlier ones of k. Every cell of k that has left the
// table did so under the mutex that is held here, either unlinked, after floor
// had been raised to its last version, or replaced here, by a cell that started
// above its last version.
func (rt *root[K, V]) publish(k hkey[K], fresh *cell[K, V], rec *record[K, V]) (c *cell[K, V], present *record[K, V]) {
	var (
		s     = rt.installShard(k.Hash)
		heirs subscriptionList[K, V]
		late  bool
	)
	for { // again only when a deleter was late, or a transaction, which is then no more
		late = false
		c = rt.cells.Compute(k, func(now *cell[K, V]) *cell[K, V] {
			last := Version(s.floor.Load())
			if now != nil {
				present = now.rec.Load()
				if !present.dead() && !present.intent() {
					return now
				}
				if late = !rt.replaceableCell(present); late {
					return now
				}
			}
			if now != nil {
				last, heirs = rt.supersede(fresh, rec, now, present, last)
			}
			rec.word |= firstWord(last)
			s.live.Add(1)
			return fresh
		})
		if !late {
			break
		}
		rt.helpReplace(k, c, present)
	}
	if heirs.members != nil {
		heirs.handedOn()
	}
	return c, present
}

// replaceableCell reports whether a cell that holds rec, a dead record or an intent, may
// be replaced in the table; if not, helpReplace comes first.
func (rt *root[K, V]) replaceableCell(rec *record[K, V]) bool {
	return !rec.intent() && (rt.history == nil || rec.ext().revision.Load() != 0)
}

// helpReplace does what another operation has still to do before the cell c of k, which
// holds rec, may be replaced.
func (rt *root[K, V]) helpReplace(k hkey[K], c *cell[K, V], rec *record[K, V]) {
	if rec.intent() {
		rec.use().finish()
		return
	}
	rt.date(rec)
	rt.recall(k, c, rec)
}

// supersede lets fresh, in which rec will be the first record, replace a cell in the table
// that holds dead. Rec is nil if nobody knows it yet. Floor is that of the shard. It
// returns the version above which rec begins, and who is to be told of the new cell. The
// caller holds the mutex of the bucket.
func (rt *root[K, V]) supersede(fresh *cell[K, V], rec *record[K, V], old *cell[K, V], dead *record[K, V], floor Version) (last Version, heirs subscriptionList[K, V]) {
	if rec != nil {
		rt.follow(rec, dead)
	}
	return max(floor, dead.version()), rt.succeed(fresh, old)
}

// succeed gives c, which will replace a dead cell in the table, the subscriptions of
// the dead one, and returns them. A watcher that has not yet looked at the deletion
// will find what c holds: a key that comes and goes takes one subscription.
func (rt *root[K, V]) succeed(c, dead *cell[K, V]) (heirs subscriptionList[K, V]) {
	old := dead.meta.Load()
	if old == nil || old.subscriptions.members == nil {
		return heirs
	}
	next := c.meta.Load().now()
	next.subscriptions = old.subscriptions
	c.meta.Store(&next)
	return old.subscriptions
}

// kill deletes k, whose cell c holds the live record old, and reports whether
// it did; if not, the record has changed. What follows is housekeeping that no other operation
// waits for: bury dates the dead record and tells of it; unlink takes the cell out of the table, at
// once or, if somebody needs it there, when tidy finds that nobody does. Meanwhile a creator may
// replace it.
func (rt *root[K, V]) kill(k hkey[K], c *cell[K, V], old *record[K, V]) bool {
	rt.recall(k, c, old)
	// Asked after old was read: so an undated deletion deletes only what was there before any
	// collector joined that might miss it.
	dead := rt.tombstone(rt.snapshotting(), old)
	// LP(Delete, DeleteIf, DeleteFunc, Clear, Compute): the dead record is stored.
	if !c.rec.CompareAndSwap(old, dead) {
		return false
	}
	rt.shard(k.Hash).live.Add(-1)
	if rt.plain && !dead.isDated() && rt.subscribers.Load() == nil {
		rt.unlink(k, c, dead) // all that bury has to do here
	} else {
		rt.bury(k, c, old, dead)
	}
	return true
}

// bury does what is left to do when dead has been stored and counted. A dead
// cell that a snapshot or a watcher needs stays in the table; the last of these
// will unlink it.
func (rt *root[K, V]) bury(k hkey[K], c *cell[K, V], old, dead *record[K, V]) {
	rt.leave(k, c, dead, rt.changed(k, c, old, dead))
}

// helpBury does for the deleter of k's cell c, which holds dead, what it may have left to do,
// but for what it counts itself.
func (rt *root[K, V]) helpBury(k hkey[K], c *cell[K, V], dead *record[K, V]) {
	needed := dead.word&datedBit != 0 && rt.settle(dead)
	rt.recall(k, c, dead)
	// Who subscribes when the deleter has returned is not told. It keeps the cell or takes it out of the
	// table before: so if neither has happened yet, it had not returned when subscribers was loaded.
	s := rt.subscribers.Load()
	if m := c.meta.Load(); m != nil && m.kept || rt.cells.Load(k) != c {
		return
	}
	rt.leave(k, c, dead, s != nil && rt.notify(s, k) || needed)
}

// leave takes the dead cell c of k out of the table, or leaves it there for those that
// need it. All have been told.
func (rt *root[K, V]) leave(k hkey[K], c *cell[K, V], dead *record[K, V], needed bool) {
	if needed {
		c.keep()
		rt.tidy(k, 0)
	} else {
		rt.unlink(k, c, dead)
	}
}

// changed is called by each operation that has stored rec in the cell c of k, in place
// of old or, if old is nil, as the first one. It reports whether a snapshot in progress
// needs what k held before, or a watcher will look at k. The order matters: until rec is
// dated the change has not happened.
func (rt *root[K, V]) changed(k hkey[K], c *cell[K, V], old, rec *record[K, V]) (needed bool) {
	if rec.isDated() {
		needed = rt.settle(rec)
	}
	if rt.constraints != nil {
		rt.constraints.unpin(k, old.indexKeys(), rec.indexKeys())
	}
	if rt.expiry != nil {
		rt.expiry.oversee(rt, k, c, old, rec)
	}
	return rt.tell(k, c, rec) || needed
}

// tell tells all that subscribe that rec was stored in the cell c of k, and reports
// whether a watcher will look at k. Several calls do no harm.
func (rt *root[K, V]) tell(k hkey[K], c *cell[K, V], rec *record[K, V]) (awaited bool) {
	if rt.history != nil {
		rt.history.remember(c.named(k.Hash), rec)
	}
	if s := rt.subscribers.Load(); s != nil {
		awaited = rt.notify(s, k)
	}
	return awaited
}

// recall makes sure that the change that has stored rec in c, and has its date, is remembered,
// where changes are. Each operation remembers what it has stored, and calls recall for what it
// is about to replace, as another caller may have stalled. So the changes of a key are
// remembered in their order.
func (rt *root[K, V]) recall(k hkey[K], c *cell[K, V], rec *record[K, V]) {
	if rt.history != nil && rec.ext().revision.Load() == 0 {
		rt.history.remember(c.named(k.Hash), rec)
	}
}

// keep marks c, which is dead or about to be, as one that stays in the table as long as somebody
// needs it, and of whose deletion all have been told.
func (c *cell[K, V]) keep() {
	for { // until no subscription comes or goes between the two lines
		now := c.meta.Load()
		next := now.now()
		next.kept = true
		if c.meta.CompareAndSwap(now, &next) {
			return
		}
	}
}

// tidy unlinks the cell of k if it is dead and nobody needs it any more. Each of
// those that may be the last to need it calls tidy: the deleter when it has left the
// cell, a watcher when it has looked, a collector when it has left. Each first writes
// that it is done and then reads what the others write, so that the last one finds
// all of it. Rank is where to look first for a subscription that needs the cell.
func (rt *root[K, V]) tidy(k hkey[K], rank uint64) {
	c := rt.cells.Load(k)
	if c == nil {
		return
	}
	rec := c.rec.Load()
	if !rec.dead() { // of an intent, the transaction does the rest
		return
	}
	now := c.meta.Load()
	if now == nil || !now.kept {
		return
	}
	if now.subscriptions.needed(rank) {
		return
	}
	if rec.word&datedBit == 0 || !rt.settle(rec) {
		rt.unlink(k, c, rec)
	}
}

// unlink takes the dead cell c of k out of the table, if no creator has replaced it.
// It raises floor first, so that a creator that finds k absent finds floor raised.
func (rt *root[K, V]) unlink(k hkey[K], c *cell[K, V], dead *record[K, V]) {
	s, version := rt.shard(k.Hash), dead.version()
	for { // until no other deleter raises it between the two lines
		floor := s.floor.Load()
		if Version(floor) >= version || s.floor.CompareAndSwap(floor, uint64(version)) {
			break
		}
	}
	rt.cells.Remove(k, c)
}
