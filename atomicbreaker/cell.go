package atomicbreaker

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A presence says which keys may have a cell. It has no type parameter, like the
// permits for keys without a cell, and is all that healthy calls need: they use
// neither the settings nor the table.
type presence struct {
	owner      owner      // the group state
	packing    keyPacking // how keys travel without the time
	totals     bool       // whether the group counts all calls
	departures departures

	// current is where the group has its state: another, once ResetAll has replaced
	// this one.
	current *atomics.Pointer[presence]

	// linked is at least the number of cells in the table, and by biased more
	// while calls have to look at the group state's settings; each slot of filter is at least the
	// number of cells with its hashes. They go up before a cell is inserted and
	// down after it was removed. While linked is zero every key is absent, and
	// while a slot is zero every key with its hashes is. That saves healthy keys
	// the hash, or the table.
	linked atomics.Int64

	// filter is nil before the first insert. From nil to an array, by CAS,
	// before linked goes up for the first time.
	filter atomics.Pointer[[filterSize]atomics.Uint32]
}

const (
	// filterSize bounds how many keys may have failures before most healthy ones
	// share their slot with one. With 1000 of 100,000 keys open a healthy call
	// takes 35 ns, and with 1024 slots 50. The slots take 16 KiB, half of an L1
	// cache, and are allocated with the first cell.
	filterSize = 1 << filterBits
	filterBits = 12

	// biased is more than there can be cells.
	biased = 1 << 48
)

// filterSlot returns the index of the slot of the cells with a hash.
func filterSlot(hash uint64) uint64 { return hash >> (64 - filterBits) }

// keyedStateOf converts the presence of a group state back.
func keyedStateOf[K comparable](p *presence) *keyedState[K] {
	// Safety: a keyedState begins with its groupState, and that with its presence; and the
	// root of a group leads to those of its own states.
	return (*keyedState[K])(unsafe.Pointer(p))
}

// groupStateOf converts the presence of a group state back, nil for nil.
func groupStateOf(p *presence) *groupState {
	// Safety: see keyedStateOf.
	return (*groupState)(unsafe.Pointer(p))
}

// empty reports whether every key is absent for sure, and need not be hashed.
func (p *presence) empty() bool { return p.linked.Load() == 0 }

// count returns how many cells are linked.
func (p *presence) count() int64 { return p.linked.Load() & (biased - 1) }

// free reports whether every key with a hash is absent for sure.
func (p *presence) free(hash uint64) bool {
	s := p.filter.Load()
	return s == nil || s[filterSlot(hash)].Load() == 0
}

// replaced reports whether ResetAll has replaced the group state.
func (p *presence) replaced() bool { return p.current.Load() != p }

// stillAbsent reports whether a key with a slot, which was absent when since was the
// last departure, is absent for sure and has been since. It needs no hash. Slot is 1 + its
// number, or 0 if that is not known.
func (p *presence) stillAbsent(slot uint64, since *departure) bool {
	if p.linked.Load() != 0 {
		s := p.filter.Load()
		if slot == 0 || s != nil && s[slot-1].Load() != 0 {
			return false
		}
	}
	return p.departures.last.Load() == since
}

// An openQuota counts the keys of a group that are open, for GroupConfig.MaxOpen.
type openQuota struct {
	// held is at least the number of cells that are open or half-open: it goes
	// up before a cell becomes so, and down after it was.
	held atomics.Int64
}

// out reports whether a cell with this word takes a place of the open quota.
func (w word) out() bool { return w.mode() == open || w.mode() == halfOpen }

// acquire takes a place for a cell that is about to open, unless limit places, if
// that is not zero, are taken. It reports whether it has.
//
// It may say no because of a cell that is about to open and then does not.
func (q *openQuota) acquire(limit int64) bool {
	if n := q.held.Add(1); limit == 0 || n <= limit {
		return true
	}
	q.held.Add(-1)
	return false
}

// acquireAnyway takes a place for a cell that somebody opens by hand.
func (q *openQuota) acquireAnyway() { q.held.Add(1) }

// release gives a place back, which was taken for a cell that has closed or
// did not open.
func (q *openQuota) release() { q.held.Add(-1) }

// A cell is the breaker of one key. When it dies, its word is a tombstone and never
// changes again.
type cell struct {
	core // first, so that a *core of a cell can be converted back

	// since is nil until the cell is dead. Then it is the departure from which on
	// departures of the key are those of later cells: its own if the cell has
	// changed its mode, otherwise the last one at that time. By CAS of the
	// first caller that helps to remove the cell.
	since atomics.Pointer[departure]
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

// keyOf returns the key of a cell of this group state.
func (ks *keyedState[K]) keyOf(c *cell) K {
	// Safety: a group state makes its cells as the first field of an entry.
	return (*entry[K])(unsafe.Pointer(c)).key
}

// lookup returns the cell of a key, or nil. The cell may be dead, now or at any
// time. Its word says so to callers that use it; they remove it and look again.
func (ks *keyedState[K]) lookup(k K, hash uint64) *cell {
	if ks.free(hash) {
		return nil
	}
	return ks.find(k)
}

// find is lookup in the table.
func (ks *keyedState[K]) find(k K) *cell {
	if c := ks.cells.Load(k); c != nil {
		return &c.cell
	}
	return nil
}

// obtain is like lookup but inserts a pristine cell if there is none, with the
// given settings or, if they are nil, those of the key. It returns nil for a
// key that is not equal to itself, which could never be found again.
func (ks *keyedState[K]) obtain(k K, hash uint64, s *settings) *cell {
	if c := ks.lookup(k, hash); c != nil || !ks.keys.Findable(k) {
		return c
	}
	if s == nil {
		s = ks.keySettings(k)
	}
	fresh := &entry[K]{key: ks.own(k)}
	ks.linking(&fresh.cell, s, hash)
	c, loaded := ks.cells.LoadOrStore(fresh.key, fresh)
	if loaded {
		ks.unlinked(hash)
	}
	return &c.cell
}

// linking completes a cell and takes it into the counts, before it is in the
// table.
func (gs *groupState) linking(fresh *cell, s *settings, hash uint64) {
	fresh.set.Store(s)
	filter := gs.filter.Load()
	if filter == nil {
		filter = gs.filter.Install(new([filterSize]atomics.Uint32))
	}
	filter[filterSlot(hash)].Add(1)
	gs.linked.Add(1)
}

// unlinked takes a cell out of the counts, once it is out of the table.
func (gs *groupState) unlinked(hash uint64) {
	gs.linked.Add(-1)
	gs.filter.Load()[filterSlot(hash)].Add(^uint32(0))
}

// finish ends an operation on a living cell. It counts the verdict first, as a listener
// may panic. Sweeps come last, as they call the listener for other keys.
func (gs *groupState) finish(c *cell, did step, v Verdict) {
	gs.root.counters.verdict(v)
	if did.flags&(wrote|withheld) != 0 {
		gs.tidy(c, did.to) // obtain may have made it for a failure that leaves nothing
	}
	gs.relax(c, did)
	if did.owed != nil {
		did.owed.deliver()
	}
	if gs.count() >= gs.sweepAt.Load() {
		gs.maybeSweep()
	}
	if did.flags&withheld != 0 {
		gs.reclaim()
	}
}

// late counts a late result that has found no living cell.
func (gs *groupState) late() Verdict { return gs.root.counters.verdict(Late) }

// relax retires a cell that is kept for its windows alone when these are empty.
// It looks into them only when nothing can be left there, so that a success
// need not sum.
func (gs *groupState) relax(c *cell, did step) {
	w := did.to
	if w.mode() != closed || !w.watched() || w != w.flagged() {
		return
	}
	if r := c.set.Load().rules; len(r.windows) != 0 && (did.at == 0 || c.idle(did.at) < r.span) {
		return
	}
	if was := word(c.word.Load()); was.living() == w {
		gs.markLeaving(c, was, gs.cellSettingsWithoutPerKey(&c.core))
	}
}

// tidy follows every write of a cell's word. It retires the cell if that made it
// pristine.
func (gs *groupState) tidy(c *cell, w word) {
	if w.pristine() {
		gs.retire(c, w)
	}
}

// retire kills and removes a cell that is still pristine, or marked, and
// reports whether it was. A cell with events that were not delivered stays, so that
// they come before those of the key's next cell. The caller that delivers the last
// event retires it.
func (gs *groupState) retire(c *cell, w word) bool {
	if gs.root.listens && !c.deliveredUpTo(w) {
		return false
	}
	if !c.word.CompareAndSwap(uint64(w), uint64(w.living().stay().bury())) {
		return false
	}
	gs.remove(c)
	return true
}

// remove takes a dead cell out of the table. Every caller that needs its place
// helps, so that none waits for the caller that killed it. When it returns,
// c.since is set and the cell is out of the table, unless the group state is outdated.
func (gs *groupState) remove(c *cell) {
	if gs.outdated() {
		return // it may be sealed; see group_events.go
	}
	if word(c.word.Load()).gen() == 0 {
		c.since.CompareAndSwap(nil, gs.departures.last.Load())
	} else {
		e := c.since.Load()
		if e == nil {
			e = c.since.Install(&departure{hash: gs.keyOps.hashOf(c), home: &gs.presence})
		}
		gs.departures.append(e)
	}
	if gs.keyOps.drop(c) {
		gs.unlinked(gs.keyOps.hashOf(c))
	}
}
