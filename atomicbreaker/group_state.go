package atomicbreaker

import (
	"math"
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// A keyedState has the state of all keys of a group between two calls of ResetAll.
// An absent key is a pristine one: closed, without failures.
//
// The part that does not depend on the type of keys is a groupState, which is compiled
// once. A keyedState adds the table, and is the keyOps of its groupState.
type keyedState[K comparable] struct {
	groupState // first, so that it can be converted back

	group *Group[K]
	keys  table.Keys[K]
	hash  table.Hash[K] // panics if a key cannot be compared
	cells *table.Table[K, entry[K]]
}

// keyOps are the operations of a groupState that depend on the type of keys.
type keyOps interface {
	// hashOf returns the hash of a cell's key.
	hashOf(*cell) uint64
	// drop takes a cell out of the table, and reports whether it was there.
	drop(*cell) bool
	// all yields all cells in the table.
	all(yield func(*cell) bool)
	// keySettingsOfCell returns the settings of a cell's key. It calls PerKey.
	keySettingsOfCell(*cell) *settings
	// queueHash returns a hash of a cell's key that is the same in all group states of the
	// group, if it has a listener. notify calls the listener.
	queueHash(*cell) uint64
	notify(*cell, Event)
	// sealBefore seals the cells of a cell's key in older group states.
	sealBefore(*cell) *eventQueue
	// keySettingsOfPermit returns the settings of the key of a permit that was given
	// while it was absent. It calls PerKey.
	keySettingsOfPermit(Permit) *settings
	// settlePacked reports the result of a call that was admitted while its key was
	// absent.
	settlePacked(Permit, result, *settings) Verdict
	// settleDead reports the result of a call that a dead cell has admitted, whose
	// key has not changed since.
	settleDead(*cell, result, *settings) Verdict
	// recordDead reports a result without a permit, which has found a dead cell.
	recordDead(*cell, result, *eventQueue)
}

// groupState is a keyedState without its keys.
type groupState struct {
	presence // first, so that it can be converted back

	keyOps keyOps
	root   *groupRoot

	// set has the settings. From one to the next by a caller that finds that Update
	// has replaced the group's.
	set atomics.Pointer[stateSettings]

	quota openQuota
	epoch time.Time // of all its settings

	// before is the group state that a ResetAll with a listener has replaced by this
	// one, until all its cells are sealed. From a group state to nil, once.
	before atomics.Pointer[groupState]

	// marks numbers the marks of cells that are about to be retired.
	marks atomics.Uint64

	// sweepAt is the number of cells at which an insert sweeps. The caller that
	// swaps it for sweeping owns the sweep, and sets it anew at the end.
	sweepAt atomics.Int64

	// reclaimAt is when a key that cannot open may look again for places of the
	// open quota, since the epoch. By CAS of the caller that then looks.
	reclaimAt atomics.Int64
}

const (
	firstSweep = 64 // with fewer cells a sweep is not worth it
	sweeping   = math.MaxInt64
)

func newKeyedState[K comparable](g *Group[K]) *keyedState[K] {
	ks := &keyedState[K]{group: g}
	ks.keys, ks.hash = newKeys[K]()
	ks.cells = table.New[K, entry[K]](ks.hash, 0)
	ks.init(&g.groupRoot, ks, packingOf[K](), g.settings())
	return ks
}

// newKeys returns functions that hash keys with a new seed. It is apart so that its
// closures are compiled once for a type.
//
//go:noinline
func newKeys[K comparable]() (keys table.Keys[K], hash table.Hash[K]) {
	keys = table.NewKeys[K]()
	return keys, keys.Hasher("atomicbreaker")
}

// init completes a group state before it is shared.
func (gs *groupState) init(g *groupRoot, ops keyOps, packing keyPacking, c *groupSettings) {
	gs.root, gs.keyOps, gs.epoch = g, ops, c.base.epoch
	gs.owner, gs.packing, gs.totals, gs.current = gs, packing, g.counters.totals != nil, &g.state
	gs.departures.init(&gs.presence)
	gs.sweepAt.Store(firstSweep)
	set := gs.newStateSettings(c)
	set.fresh = true
	gs.linked.Store(biased)
	gs.set.Store(set)
}

func (ks *keyedState[K]) hashOf(c *cell) uint64 { return ks.hash(ks.keyOf(c), 0) }

func (ks *keyedState[K]) drop(c *cell) bool {
	// Safety: see keyOf.
	k := (*entry[K])(unsafe.Pointer(c))
	return ks.cells.CompareAndDelete(k.key, k)
}

func (ks *keyedState[K]) all(yield func(*cell) bool) {
	for _, c := range ks.cells.All() {
		if !yield(&c.cell) {
			return
		}
	}
}

// allowBiased is Group.Allow while calls have to look at the group state's settings;
// now is the last departure.
func (ks *keyedState[K]) allowBiased(k K, now *departure) (Permit, error) {
	h := ks.hash(k, 0)
	if ks.free(h) && ks.departures.last.Load() == now {
		// LP(Allow): an absent key admits when its slot of the filter is free.
		return ks.absentPermit(k, now, 1+filterSlot(h)), nil
	}
	return ks.allowLinked(k, h, now)
}

// allowLinked is Group.Allow for a key whose slot is in use; now is the last departure.
//
// It retries only if a cell has departed, or if a cell has died.
func (ks *keyedState[K]) allowLinked(k K, h uint64, now *departure) (Permit, error) {
	for ; ; now = ks.departures.last.Load() {
		c := ks.find(k)
		if c == nil {
			// LP(Allow): an absent key admits when it is not found.
			if ks.departures.last.Load() == now {
				return ks.absentPermit(k, now, 1+filterSlot(h)), nil
			}
			continue
		}
		if ks.outdated() {
			return ks.group.Allow(k)
		}
		p, err, died := ks.admit(c)
		if !died {
			return p, err
		}
	}
}

// admit asks a cell for admission. It reports whether the caller has to look
// again.
func (gs *groupState) admit(c *cell) (p Permit, refused error, died bool) {
	a, err := c.admit(gs.cellSettings(c).rules.slow)
	if a.word.mode() == tombstone {
		gs.remove(c)
		return p, nil, true
	}
	if err != nil || a.as == asShadow {
		return p, err, false
	}
	p = Permit{core: &c.core, bits: cellBits(a.word.stay(), a.begun)}
	if a.as == asAnew {
		gs.tidy(c, a.word)
	}
	if a.owed != nil {
		p.pay(a.owed)
	}
	return p, nil, false
}

func (ks *keyedState[K]) absentPermit(k K, now *departure, slot uint64) Permit {
	if set := ks.set.Load(); !set.fresh && set.packing == ks.packing {
		return absentPermit(ks.packing, k, now, slot)
	}
	return ks.timedPermit(k, now, slot)
}

// timedPermit is apart so that absentPermit can be inlined.
//
//go:noinline
func (ks *keyedState[K]) timedPermit(k K, now *departure, slot uint64) Permit {
	set := ks.settings()
	p := absentPermit(set.packing, k, now, slot)
	if set.packing != ks.packing {
		p.bits |= uint64(set.shared.begin()>>begunUnit) & begunMask
	}
	return p
}

// finishReport reports what is left of a result whose TripFunc has not returned. It
// is the end of settleCell, settleKey or record.
func (gs *groupState) finishReport(work *report) {
	v, did := work.apply(word(work.core.word.Load()))
	c, r := cellOf(work.core), work.result
	r.how |= wasAsked
	died := did.to.mode() == tombstone
	switch {
	case died && r.how&direct != 0:
		gs.remove(c)
		gs.keyOps.recordDead(c, r, did.owed)
	case died && work.stay.mode() == closed && did.to == work.stay.bury():
		gs.remove(c)
		if !gs.outdated() {
			gs.keyOps.settleDead(c, r, nil)
		}
	default:
		gs.finish(c, did, v)
	}
}

func (ks *keyedState[K]) settleDead(c *cell, r result, s *settings) Verdict {
	k := ks.keyOf(c)
	return ks.settleKey(k, ks.hash(k, 0), c.since.Load(), r, s)
}

func (ks *keyedState[K]) recordDead(c *cell, r result, owed *eventQueue) {
	ks.recordAgain(ks.keyOf(c), r, owed)
}

// settleAbsent reports the result of a call that was admitted while its key was
// absent, and settleCell that of one that a cell has admitted. Non-nil settings are
// those by which it was classified.
func (gs *groupState) settleAbsent(p Permit, r result, s *settings) Verdict {
	// LP(Done): after ResetAll, all results are late when the group state is read.
	if r.how&looked == 0 && gs.replaced() {
		return gs.late()
	}
	if p.tellsTime(gs.packing) {
		r.took = since(p.bits, gs.settings().shared)
	}
	if r.how&looked == 0 && !mayMatter(r) && gs.stillAbsent(p.slot(p.packing(gs.packing)), p.since) {
		// LP(Done): an absent key stays pristine.
		return Counted
	}
	return gs.keyOps.settlePacked(p, r, s)
}

func (ks *keyedState[K]) settlePacked(p Permit, r result, s *settings) Verdict {
	k := unpack[K](p.packing(ks.packing), p.key, p.bits)
	return ks.settleKey(k, ks.hash(k, 0), p.since, r, s)
}

func (gs *groupState) settleCell(p Permit, r result) Verdict {
	// LP(Done): after ResetAll, all results are late when the group state is read.
	if gs.replaced() {
		return gs.late()
	}
	c, stay := cellOf(p.core), p.stay()
	s := gs.cellSettingsWithoutPerKey(&c.core)
	r.took = p.took(s)
	v, did := c.apply(word(c.word.Load()), stay, r, s)
	r = r.after(did)
	if stay.mode() == closed && did.to == stay.bury() {
		// The cell has died without having changed since it admitted the
		// call, which therefore stays good.
		gs.remove(c)
		if gs.outdated() {
			// LP(Done): late when the group state is read.
			return gs.late()
		}
		// The group state was not outdated in remove either, so c.since is set.
		return gs.keyOps.settleDead(c, r, s)
	}
	gs.finish(c, did, v)
	return v
}

// mayMatter reports whether a result can make an absent key present.
func mayMatter(r result) bool {
	return r.outcome != Success && r.outcome != Ignored || r.took != 0
}

// settleKey reports the result of a call that no living cell has admitted. When the call
// was admitted, since was the last departure and its key was pristine.
//
// It retries only if a cell has died.
func (ks *keyedState[K]) settleKey(k K, hash uint64, since *departure, r result, s *settings) Verdict {
	matters := mayMatter(r)
	if matters && (r.outcome == Success || r.outcome == Ignored) {
		if s == nil {
			s = ks.keySettings(k)
		}
		matters = r.outcome == Success && s.rules.tooSlow(r)
	}
	for {
		var c *cell
		if !matters {
			c = ks.lookup(k, hash)
		} else if c = ks.obtain(k, hash, s); c == nil {
			return ks.late() // not equal to itself, so nothing to remember
		}
		v, died := ks.settleKeyIn(c, hash, since, &r)
		if !died {
			return v
		}
	}
}

// settleKeyIn is settleKey for a key that has this cell, or none. It reports whether the
// caller has to look again, with r.
func (gs *groupState) settleKeyIn(c *cell, hash uint64, since *departure, r *result) (v Verdict, died bool) {
	if c != nil && gs.outdated() {
		// LP(Done): late when the group state is read.
		return gs.late(), false
	}
	// The cell, or its absence, comes first: later transitions of the key are
	// transitions of this cell.
	late := gs.departures.departed(since, hash)
	if c == nil {
		if late {
			return gs.late(), false
		}
		// LP(Done): an absent key stays pristine.
		return Counted, false
	}
	if late {
		// LP(Done): late when the departure was seen. If obtain made the
		// cell, there is no more reason for it.
		if c.word.Load() == 0 {
			gs.retire(c, 0)
		}
		return gs.late(), false
	}
	s := gs.cellSettingsWithoutPerKey(&c.core)
	v, did := c.apply(word(c.word.Load()), 0, *r, s) // zero: the cell's first stay
	if did.to.mode() == tombstone {
		gs.remove(c)
		*r = r.after(did)
		return Late, true
	}
	gs.finish(c, did, v)
	return v, false
}
