package atomicbreaker

import (
	"math"
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// A book is what a group knows about its keys between two calls of ResetAll.
// An absent key is a pristine one: closed, without failures.
//
// What does not depend on the type of keys is in pages, so that it is compiled
// once; a book adds the table, and is the shelf of its pages.
type book[K comparable] struct {
	pages // first, so that it can be converted back

	group *Group[K]
	keys  table.Keys[K]
	hash  table.Hash[K] // panics if a key cannot be compared
	cells *table.Table[K, entry[K]]
}

// A shelf is what pages need to know of keys.
type shelf interface {
	// hashOf returns the hash of a cell's key.
	hashOf(*cell) uint64
	// drop takes a cell out of the table, and reports whether it was there.
	drop(*cell) bool
	// all yields all cells in the table.
	all(yield func(*cell) bool)
	// settingsOfKey returns the settings of a cell's key. It runs user code.
	settingsOfKey(*cell) *settings
	// feedHash returns a hash of a cell's key that is the same in all books of the
	// group, if it has a listener. tell calls the listener.
	feedHash(*cell) uint64
	tell(*cell, Event)
	// sealBefore seals the cells of a cell's key in older books.
	sealBefore(*cell) *feed
	// packedSettings returns the settings of the key of a permit that was given while
	// it was absent. It runs user code.
	packedSettings(Permit) *settings
	// settlePacked reports the result of a call that was admitted while its key was
	// absent.
	settlePacked(Permit, result, *settings) Verdict
	// settleDead reports the result of a call that a dead cell has admitted, whose
	// key has not changed since.
	settleDead(*cell, result, *settings) Verdict
	// recordDead reports a result without a permit, which has found a dead cell.
	recordDead(*cell, result, *feed)
}

// pages are a book without its keys.
type pages struct {
	absence // first, so that it can be converted back

	shelf shelf
	of    *root

	// set is what the book goes by. From one to the next by whoever finds that
	// Update has replaced the group's.
	set atomics.Pointer[bookSettings]

	quota *quota    // nil if there is no bound
	epoch time.Time // of all its settings

	// before is the book that a ResetAll with a listener has replaced by this
	// one, until all its cells are sealed. From a book to nil, once.
	before atomics.Pointer[pages]

	// marks numbers the marks of cells that are about to be retired.
	marks atomics.Uint64

	// sweepAt is the number of cells at which an insert sweeps. Whoever swaps
	// it for sweeping owns the sweep, and sets it anew at the end.
	sweepAt atomics.Int64

	// reclaimAt is when a key that cannot open may look again for places of the
	// quota, since the epoch. By CAS of who then looks.
	reclaimAt atomics.Int64
}

const (
	firstSweep = 64 // fewer idle cells than this are not worth looking for
	sweeping   = math.MaxInt64
)

func newBook[K comparable](g *Group[K]) *book[K] {
	b := &book[K]{group: g}
	b.keys, b.hash = newKeys[K]()
	b.cells = table.New[K, entry[K]](b.hash, 0)
	b.init(&g.root, b, carryOf[K](), g.settings())
	return b
}

// newKeys returns what hashes keys with a seed of its own. It is apart so that its
// closures are compiled once for a type.
//
//go:noinline
func newKeys[K comparable]() (keys table.Keys[K], hash table.Hash[K]) {
	keys = table.NewKeys[K]()
	return keys, keys.Hasher("atomicbreaker")
}

// init completes the pages of a book before it is shared.
func (b *pages) init(g *root, s shelf, kind carry, of *groupSettings) {
	b.of, b.shelf, b.epoch = g, s, of.base.epoch
	b.home, b.kind, b.root = b, kind, &g.book
	b.eras.init(&b.absence)
	if g.bounds {
		b.quota = &quota{census: newCensus()}
	}
	b.sweepAt.Store(firstSweep)
	set := b.settingsOf(of)
	set.fresh = true
	b.linked.Store(biased)
	b.set.Store(set)
}

func (b *book[K]) hashOf(c *cell) uint64 { return b.hash(b.keyOf(c), 0) }

func (b *book[K]) drop(c *cell) bool {
	// Safety: see keyOf.
	k := (*entry[K])(unsafe.Pointer(c))
	return b.cells.CompareAndDelete(k.key, k)
}

func (b *book[K]) all(yield func(*cell) bool) {
	for _, c := range b.cells.All() {
		if !yield(&c.cell) {
			return
		}
	}
}

// allowBiased is Group.Allow for what has to look at the book's settings, in the
// era now.
func (b *book[K]) allowBiased(k K, now *era) (Permit, error) {
	h := b.hash(k, 0)
	if b.quota != nil {
		b.quota.census.see(h)
	}
	if b.free(h) && b.eras.now.Load() == now {
		// LP(Allow): an absent key admits when its stripe is free.
		return b.absentPermit(k, now, 1+stripeOf(h)), nil
	}
	return b.allowLinked(k, h, now)
}

// allowLinked is Group.Allow for a key whose stripe is in use, in the era now.
//
// It goes round again only if an era began, or if a cell has died.
func (b *book[K]) allowLinked(k K, h uint64, now *era) (Permit, error) {
	for ; ; now = b.eras.now.Load() {
		c := b.find(k)
		if c == nil {
			// LP(Allow): an absent key admits when it is not found.
			if b.eras.now.Load() == now {
				return b.absentPermit(k, now, 1+stripeOf(h)), nil
			}
			continue
		}
		if b.outdated() {
			return b.group.Allow(k)
		}
		p, err, died := b.admit(c)
		if !died {
			return p, err
		}
	}
}

// admit asks a cell for admission. It reports whether the caller has to look
// again.
func (b *pages) admit(c *cell) (p Permit, refused error, died bool) {
	a, err := c.admit(b.settingsNow(c).rules.slow)
	if a.word.mode() == tombstone {
		b.remove(c)
		return p, nil, true
	}
	if err != nil || a.as == asShadow {
		return p, err, false
	}
	p = Permit{core: &c.core, bits: bitsFor(a.word.stay(), a.begun) | inCell}
	if a.as == asAnew {
		b.tidy(c, a.word)
	}
	if a.owed != nil {
		p.pay(a.owed)
	}
	return p, nil, false
}

func (b *book[K]) absentPermit(k K, now *era, stripe uint64) Permit {
	if set := b.set.Load(); !set.fresh && set.carry == b.kind {
		return absentPermit(b.kind, k, now, stripe)
	}
	return b.timedPermit(k, now, stripe)
}

// timedPermit is apart so that absentPermit can be inlined.
//
//go:noinline
func (b *book[K]) timedPermit(k K, now *era, stripe uint64) Permit {
	set := b.settings()
	p := absentPermit(set.carry, k, now, stripe)
	if set.carry != b.kind {
		p.bits |= uint64(set.settings.begin()>>begunUnit) & begunMask
	}
	return p
}

// finishTurn is owner.finishTurn. It is the end of settleCell, settle or record.
func (b *pages) finishTurn(t *turn) {
	_, did := t.rest()
	c, r := cellOf(t.core), t.result
	r.how |= wasAsked
	died := did.to.mode() == tombstone
	switch {
	case died && t.direct:
		b.remove(c)
		b.shelf.recordDead(c, r, did.owed)
	case died && t.stay.mode() == closed && did.to == t.stay.bury():
		b.remove(c)
		if !b.outdated() {
			b.shelf.settleDead(c, r, nil)
		}
	default:
		b.finish(c, did)
	}
}

func (b *pages) counts() *ledger { return &b.of.ledger }

func (b *book[K]) settleDead(c *cell, r result, s *settings) Verdict {
	k := b.keyOf(c)
	return b.settle(k, b.hash(k, 0), c.since.Load(), r, s)
}

func (b *book[K]) recordDead(c *cell, r result, owed *feed) { b.recordAgain(b.keyOf(c), r, owed) }

func (b *pages) settleAbsent(p Permit, r result, s *settings) Verdict {
	// LP(Done): after ResetAll, all results are late when the book is read.
	if r.how&looked == 0 && b.replaced() {
		return Late
	}
	if p.tellsTime(b.kind) {
		r.took = p.absentTook(b.settings().settings)
	}
	if r.how&looked == 0 && !mayMatter(r) && b.stillAbsent(p.stripe(p.carried(b.kind)), p.era) {
		// LP(Done): an absent key stays pristine.
		return Counted
	}
	return b.shelf.settlePacked(p, r, s)
}

func (b *book[K]) settlePacked(p Permit, r result, s *settings) Verdict {
	k := unpack[K](p.carried(b.kind), p.key, p.bits)
	return b.settle(k, b.hash(k, 0), p.era, r, s)
}

func (b *pages) settleCell(p Permit, r result) Verdict {
	// LP(Done): after ResetAll, all results are late when the book is read.
	if b.replaced() {
		return Late
	}
	c, stay := cellOf(p.core), p.stay()
	s := b.settingsHeld(c)
	r.took = p.took(s)
	v, did := c.settle(word(c.word.Load()), stay, r, s)
	r = r.after(did)
	if stay.mode() == closed && did.to == stay.bury() {
		// The cell has died without having changed since it admitted the
		// call, which therefore stays good.
		b.remove(c)
		if b.outdated() {
			// LP(Done): late when the book is read.
			return Late
		}
		// The book was not outdated in remove either, so c.since is set.
		return b.shelf.settleDead(c, r, s)
	}
	b.finish(c, did)
	return v
}

// mayMatter reports whether a result can make an absent key present.
func mayMatter(r result) bool {
	return r.outcome != Success && r.outcome != Ignored || r.took != 0
}

// settle reports the result of a call that was admitted in the given era while
// its key was pristine, and has no cell that could still tell.
//
// It goes round again only if a cell has died.
func (b *book[K]) settle(k K, hash uint64, since *era, r result, s *settings) Verdict {
	matters := mayMatter(r)
	if matters && (r.outcome == Success || r.outcome == Ignored) {
		if s == nil {
			s = b.settingsFor(k)
		}
		matters = r.outcome == Success && s.rules.tooSlow(r)
	}
	for {
		var c *cell
		if !matters {
			c = b.lookup(k, hash)
		} else if c = b.obtain(k, hash, s); c == nil {
			return Late // not equal to itself, so nothing to remember
		}
		v, died := b.settleIn(c, hash, since, &r)
		if !died {
			return v
		}
	}
}

// settleIn is settle for a key that has this cell, or none. It reports whether the
// caller has to look again, with what is left of the result.
func (b *pages) settleIn(c *cell, hash uint64, since *era, r *result) (v Verdict, died bool) {
	if c != nil && b.outdated() {
		// LP(Done): late when the book is read.
		return Late, false
	}
	// The cell, or its absence, comes first: what happens to the key later
	// happens to this cell.
	late := b.eras.departed(since, hash)
	if c == nil {
		if late {
			return Late, false
		}
		// LP(Done): an absent key stays pristine.
		return Counted, false
	}
	if late {
		// LP(Done): late when the departure was seen. If obtain made the
		// cell, there is no more reason for it.
		if b.keepsIdle() == 0 && c.word.Load() == 0 {
			b.retire(c, 0)
		}
		return Late, false
	}
	s := b.settingsHeld(c)
	v, did := c.settle(word(c.word.Load()), 0, *r, s) // zero: the cell's first stay
	if did.to.mode() == tombstone {
		b.remove(c)
		*r = r.after(did)
		return Late, true
	}
	b.finish(c, did)
	return v, false
}
