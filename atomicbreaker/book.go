package atomicbreaker

import (
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// A book is what a group knows about its keys between two calls of ResetAll.
// An absent key is a pristine one: closed, without failures.
type book[K comparable] struct {
	// What every call reads comes first.
	group *Group[K]
	kind  carry // how keys travel without the time
	eras  eras

	// linked is at least the number of cells in the table, and one more while
	// bookSettings.biased; each stripe is at least the number of cells with its
	// hashes. They go up before a cell is inserted and down after it was removed.
	// While linked is zero every key is absent, and while a stripe is zero every
	// key with its hashes is. That saves healthy keys the hash, or the table.
	linked atomics.Int64

	// stripes is nil before the first insert. From nil to an array, by CAS,
	// before linked goes up for the first time.
	stripes atomics.Pointer[[stripes]atomics.Uint32]

	// set is what the book goes by. From one to the next by whoever finds that
	// Update has replaced the group's.
	set atomics.Pointer[bookSettings[K]]

	quota *quota // nil if there is no bound
	keys  table.Keys[K]
	hash  table.Hash[K] // panics if a key cannot be compared
	cells *table.Table[K, cell[K]]
	epoch time.Time // of all its settings

	// before is the book that a ResetAll with a listener has replaced by this
	// one, until all its cells are sealed. From a book to nil, once.
	before atomics.Pointer[book[K]]

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
	// stripes bounds how many keys may have failures before most healthy ones
	// share their stripe with one. They take 16 KiB, half of an L1 cache.
	stripes    = 1 << stripeBits
	stripeBits = 12

	firstSweep = 64 // fewer idle cells than this are not worth looking for
	sweeping   = math.MaxInt64
)

func newBook[K comparable](g *Group[K]) *book[K] {
	of := g.settings()
	b := &book[K]{group: g, epoch: of.base.epoch, keys: table.NewKeys[K](), kind: carryOf[K]()}
	if g.bounds {
		b.quota = &quota{census: newCensus()}
	}
	b.hash = b.keys.Hasher("atomicbreaker")
	b.cells = table.New[K, cell[K]](b.hash, 0)
	b.eras.init(b)
	b.sweepAt.Store(firstSweep)
	set := b.settingsOf(of)
	set.fresh = true
	b.linked.Store(1)
	b.set.Store(set)
	return b
}

// empty reports whether every key is absent for sure, and need not be hashed.
func (b *book[K]) empty() bool { return b.linked.Load() == 0 }

// allow is Group.Allow in this book.
//
// It goes round again only if an era began, or if a cell has died.
func (b *book[K]) allow(k K) (Permit, error) {
	for {
		// The era must be that of the moment at which the key was absent, so
		// it is read on both sides of that.
		now := b.eras.now.Load()
		if b.empty() {
			// LP(Allow): an absent key admits when there are no cells.
			if b.eras.now.Load() == now {
				return absentPermit(b.kind, k, now, 0), nil
			}
			continue
		}
		h := b.hash(k, 0)
		if b.quota != nil {
			b.quota.census.see(h)
		}
		c := b.lookup(k, h)
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
		a, err := c.admit(b.settingsNow(c).rules.slow)
		if a.word.mode() == tombstone {
			b.remove(c)
			continue
		}
		if err != nil || a.as == asShadow {
			return Permit{}, err
		}
		p := Permit{core: &c.core, bits: bitsFor(a.word.stay(), a.begun) | inCell}
		if a.as == asAnew {
			b.tidy(c, a.word)
		}
		if a.owed != nil {
			p.pay(a.owed)
		}
		return p, nil
	}
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

// stillAbsent reports whether the key of a permit that was given while it was
// absent is absent for sure. It takes no hash.
func (b *book[K]) stillAbsent(p Permit) bool { return b.linked.Load() == 0 || b.stripeIsFree(p) }

func (b *book[K]) stripeIsFree(p Permit) bool {
	n, s := p.stripe(p.carried(b.kind)), b.stripes.Load()
	return n != 0 && (s == nil || s[n-1].Load() == 0)
}

// finishTurn is owner.finishTurn. It is the end of settleCell, settle or record.
func (b *book[K]) finishTurn(t *turn) {
	_, did := t.rest()
	c, r := b.cellOf(t.core), t.result
	r.how |= wasAsked
	died := did.to.mode() == tombstone
	switch {
	case died && t.direct:
		b.remove(c)
		b.recordAgain(c.key, r, did.owed)
	case died && t.stay.mode() == closed && did.to == t.stay.bury():
		b.remove(c)
		if !b.outdated() {
			b.settle(c.key, b.hash(c.key, 0), c.since.Load(), r, nil)
		}
	default:
		b.finish(c, did)
	}
}

func (b *book[K]) counts() *ledger { return &b.group.ledger }

func (b *book[K]) settleAbsent(p Permit, r result, s *settings) Verdict {
	// LP(Done): after ResetAll, all results are late when the book is read.
	if b.group.book.Load() != b {
		return Late
	}
	if p.tellsTime(b.kind) {
		r.took = p.absentTook(b.settings().settings)
	}
	if !b.mayMatter(r) && b.stillAbsent(p) && b.eras.now.Load() == p.era {
		// LP(Done): an absent key stays pristine.
		return Counted
	}
	k := unpack[K](p.carried(b.kind), p.key, p.bits)
	return b.settle(k, b.hash(k, 0), p.era, r, s)
}

func (b *book[K]) settleCell(p Permit, r result) Verdict {
	// LP(Done): after ResetAll, all results are late when the book is read.
	if b.group.book.Load() != b {
		return Late
	}
	c, stay := b.cellOf(p.core), p.stay()
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
		return b.settle(c.key, b.hash(c.key, 0), c.since.Load(), r, s)
	}
	b.finish(c, did)
	return v
}

// mayMatter reports whether a result can make an absent key present.
func (b *book[K]) mayMatter(r result) bool {
	return r.outcome != Success && r.outcome != Ignored || r.took != 0
}

// settle reports the result of a call that was admitted in the given era while
// its key was pristine, and has no cell that could still tell.
//
// It goes round again only if a cell has died.
func (b *book[K]) settle(k K, hash uint64, since *era, r result, s *settings) Verdict {
	matters := b.mayMatter(r)
	if matters && (r.outcome == Success || r.outcome == Ignored) {
		if s == nil {
			s = b.settingsFor(k)
		}
		matters = r.outcome == Success && s.rules.tooSlow(r)
	}
	for {
		var c *cell[K]
		if !matters {
			c = b.lookup(k, hash)
		} else if c = b.obtain(k, hash, s); c == nil {
			return Late // not equal to itself, so nothing to remember
		}
		if c != nil && b.outdated() {
			// LP(Done): late when the book is read.
			return Late
		}
		// The cell, or its absence, comes first: what happens to the key later
		// happens to this cell.
		late := b.eras.departed(since, hash)
		if c == nil {
			if late {
				return Late
			}
			// LP(Done): an absent key stays pristine.
			return Counted
		}
		if late {
			// LP(Done): late when the departure was seen. If obtain made the
			// cell, there is no more reason for it.
			if b.keepsIdle() == 0 && c.word.Load() == 0 {
				b.retire(c, 0)
			}
			return Late
		}
		s := b.settingsHeld(c)
		v, did := c.settle(word(c.word.Load()), 0, r, s) // zero: the cell's first stay
		if did.to.mode() == tombstone {
			b.remove(c)
			r = r.after(did)
			continue
		}
		b.finish(c, did)
		return v
	}
}
