package atomicbreaker

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// A book is what a group knows about its keys between two calls of ResetAll.
// An absent key is a pristine one: closed, without failures.
type book[K comparable] struct {
	group    *Group[K]
	settings *settings // for all keys if PerKey is nil; also the clock
	keys     table.Keys[K]
	hash     table.Hash[K] // panics if a key cannot be compared
	cells    *table.Table[K, cell[K]]
	carry    carry

	// hashes says that every key must be hashed, even if none is stored: to
	// find out whether that panics, or to count keys; or that permits say when
	// calls began.
	hashes bool

	eras eras

	// before is the book that a ResetAll with a listener has replaced by this
	// one, until all its cells are sealed. From a book to nil, once.
	before atomics.Pointer[book[K]]

	// linked is at least the number of cells in the table, and each stripe at
	// least the number of those with its hashes: they go up before a cell is
	// inserted and down after it was removed. While linked is zero every key is
	// absent, and while a stripe is zero every key with its hashes is. That
	// saves healthy keys the hash, or the table.
	linked atomics.Int64

	// stripes is nil before the first insert. From nil to an array, by CAS,
	// before linked goes up for the first time.
	stripes atomics.Pointer[[stripes]atomics.Uint32]

	// marks numbers the marks of cells that are about to be retired.
	marks atomics.Uint64

	// sweepAt is the number of cells at which an insert sweeps. Whoever swaps
	// it for sweeping owns the sweep, and sets it anew at the end.
	sweepAt atomics.Int64
}

const (
	// stripes bounds how many keys may have failures before most healthy ones
	// share their stripe with one. They take 16 KiB, half of an L1 cache.
	stripes    = 1 << stripeBits
	stripeBits = 12

	firstSweep = 64 // fewer idle cells than this are not worth looking for
	sweeping   = math.MaxInt64
)

// A cell is the breaker of one key. Its core's settings and its key never
// change. When it dies, its word is a tombstone and never changes again.
type cell[K comparable] struct {
	core // first, so that a *core of a cell can be converted back
	key  K

	// touched is when the cell last became pristine, since the book's epoch,
	// if idle cells are kept. Only Sweep reads it, and nothing but memory
	// depends on it.
	touched atomics.Int64

	// since is nil until the cell is dead. Then it is the era from which on
	// departures of the key are those of later cells: its own if the cell has
	// changed its mode, otherwise the last one at that time. By CAS of whoever
	// helps to remove the cell first.
	since atomics.Pointer[era]
}

func newBook[K comparable](g *Group[K]) *book[K] {
	b := &book[K]{group: g, keys: table.NewKeys[K](), carry: carryOf[K]()}
	if g.settings != nil {
		s := *g.settings
		s.owner, s.listens = b, g.listens()
		b.settings = &s
	} else {
		b.settings, _ = new(Config).compile(b) // the defaults are valid
	}
	b.settings.ledger = &g.ledger
	if f := g.config.MaxOpenFraction; f != 0 {
		b.settings.quota = &quota{census: newCensus(), ppm: max(1, uint64(math.Round(f*million)))}
	}
	if b.settings.rules.slow {
		b.carry = carryTimed
	}
	b.hashes = b.carry <= carryTimed || b.settings.quota != nil
	b.hash = b.keys.Hasher("atomicbreaker")
	b.cells = table.New[K, cell[K]](b.hash, 0)
	b.eras.init(b)
	b.sweepAt.Store(firstSweep)
	return b
}

// cellOf converts the core of a cell back.
func (b *book[K]) cellOf(c *core) *cell[K] {
	// Safety: only cells of this book have settings owned by it, and a cell's
	// core is its first field.
	return (*cell[K])(unsafe.Pointer(c))
}

// empty reports whether every key is absent for sure.
func (b *book[K]) empty() bool { return !b.hashes && b.linked.Load() == 0 }

// stripeOf returns the index of the stripe of the cells with a hash.
func stripeOf(hash uint64) uint64 { return hash >> (64 - stripeBits) }

// lookup returns the cell of a key, or nil. The cell may be dead, now or at any
// time; then its word says so to all who go on to use it, and they remove it
// and look again.
func (b *book[K]) lookup(k K, hash uint64) *cell[K] {
	if s := b.stripes.Load(); s == nil || s[stripeOf(hash)].Load() == 0 {
		return nil
	}
	return b.cells.Load(k)
}

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
				return absentPermit(b.carry, k, now, 0), nil
			}
			continue
		}
		h := b.hash(k, 0)
		if q := b.settings.quota; q != nil {
			q.census.see(h)
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
		a, err := c.admit(b.timed())
		if a.word.mode() == tombstone {
			b.remove(c)
			continue
		}
		if err != nil || a.lets {
			return Permit{}, err
		}
		p := Permit{core: &c.core, bits: bitsFor(a.word.stay(), a.begun) | inCell}
		if a.owed != nil {
			p.pay(a.owed)
		}
		return p, nil
	}
}

// timed reports whether cells may have to know when calls began.
func (b *book[K]) timed() bool { return b.settings.rules.slow || b.group.config.PerKey != nil }

func (b *book[K]) absentPermit(k K, now *era, stripe uint64) Permit {
	p := absentPermit(b.carry, k, now, stripe)
	if b.carry == carryTimed {
		p.bits |= uint64(b.settings.begin()>>begunUnit) & begunMask
	}
	return p
}

// stillAbsent reports whether the key of a permit that was given while it was
// absent is absent for sure. It takes no hash.
func (b *book[K]) stillAbsent(p Permit) bool {
	if b.linked.Load() == 0 {
		return true
	}
	n := p.stripe(b.carry)
	return n != 0 && b.stripes.Load()[n-1].Load() == 0
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
	if s.quota != nil {
		s.quota.census.see(hash)
	}
	fresh := &cell[K]{key: k}
	fresh.set.Store(s)
	b.touch(fresh)
	n := b.linking(fresh)
	c, loaded := b.cells.LoadOrStore(k, fresh)
	if loaded {
		b.unlinked(fresh)
		return c
	}
	b.maybeSweep(n)
	return fresh
}

// linking takes a cell into the counts, before it is in the table.
func (b *book[K]) linking(c *cell[K]) int64 {
	if b.stripes.Load() == nil {
		b.stripes.CompareAndSwap(nil, new([stripes]atomics.Uint32))
	}
	b.stripes.Load()[stripeOf(b.hash(c.key, 0))].Add(1)
	return b.linked.Add(1)
}

// unlinked takes a cell out of the counts, once it is out of the table.
func (b *book[K]) unlinked(c *cell[K]) {
	b.linked.Add(-1)
	b.stripes.Load()[stripeOf(b.hash(c.key, 0))].Add(^uint32(0))
}

// settingsFor returns the settings of a key. It runs user code.
func (b *book[K]) settingsFor(k K) *settings {
	if b.group.config.PerKey == nil {
		return b.settings
	}
	c := b.group.config.PerKey(k)
	s, err := c.compileKeyed(b)
	if err != nil {
		panic(fmt.Sprintf("%v (from GroupConfig.PerKey for key %v)", err, k))
	}
	s.listens, s.ledger, s.quota = b.group.listens(), &b.group.ledger, b.settings.quota
	return s
}

func (b *book[K]) counts() *ledger { return &b.group.ledger }

func (b *book[K]) absentSettings(p Permit) *settings {
	return b.settingsFor(unpack[K](b.carry, p.key, p.bits))
}

func (b *book[K]) settleAbsent(p Permit, r result, s *settings) Verdict {
	// LP(Done): after ResetAll, all results are late when the book is read.
	if b.group.book.Load() != b {
		return Late
	}
	if b.carry == carryTimed {
		r.took = p.absentTook(b.settings)
	}
	if !b.mayMatter(r) && b.stillAbsent(p) && b.eras.now.Load() == p.era {
		// LP(Done): an absent key stays pristine.
		return Counted
	}
	k := unpack[K](b.carry, p.key, p.bits)
	return b.settle(k, b.hash(k, 0), p.era, r, s)
}

func (b *book[K]) settleCell(p Permit, r result) Verdict {
	// LP(Done): after ResetAll, all results are late when the book is read.
	if b.group.book.Load() != b {
		return Late
	}
	c, stay := b.cellOf(p.core), p.stay()
	s := c.set.Load()
	r.took = p.took(s)
	v, did := c.settle(stay, r, s)
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
			if b.group.config.IdleTimeout == 0 && c.word.Load() == 0 {
				b.retire(c, 0)
			}
			return Late
		}
		v, did := c.settle(0, r, c.set.Load()) // zero: the cell's first stay
		if did.to.mode() == tombstone {
			b.remove(c)
			continue
		}
		b.finish(c, did)
		return v
	}
}

// finish ends an operation on a living cell.
func (b *book[K]) finish(c *cell[K], did step) {
	if did.wrote {
		b.tidy(c, did.to)
	}
	did.owed.deliver()
}

// tidy follows every write of a cell's word. It retires the cell if that made
// it pristine and idle cells are not kept.
func (b *book[K]) tidy(c *cell[K], w word) {
	if !w.pristine() {
		return
	}
	if b.group.config.IdleTimeout == 0 {
		b.retire(c, w)
	} else {
		b.touch(c)
	}
}

func (b *book[K]) touch(c *cell[K]) {
	if b.group.config.IdleTimeout != 0 {
		c.touched.Store(int64(b.settings.now()))
	}
}

// retire kills and removes a cell that is still pristine, or marked, and
// reports whether it was. A cell with events that were not delivered stays: so
// they come before those of the key's next cell. Whoever delivers the last
// retires it.
func (b *book[K]) retire(c *cell[K], w word) bool {
	if b.group.listens() && !c.toldAllUpTo(w) {
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
			c.since.CompareAndSwap(nil, &era{hash: b.hash(c.key, 0), home: b})
		}
		b.eras.begin(c.since.Load())
	}
	if b.cells.CompareAndDelete(c.key, c) {
		b.unlinked(c)
	}
}
