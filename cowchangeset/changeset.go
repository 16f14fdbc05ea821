package cowchangeset

import (
	"context"
	"iter"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Changeset is a sequence of entries that grows until it is sealed. Trackers
// make changesets; the zero value is of no use. A Changeset must not be copied.
type Changeset[E any] struct {
	_ atomics.NoCopy

	// Written by the Start that makes the changeset, before it announces it. With
	// the beginning of log they fill the cache line that every Record reads.
	tracker *Tracker[E]
	id      string
	ordinal uint64
	flusher *flusher[E] // brings the store up to date; nil without a store
	log     log[E]

	// prev is the changeset before this one. It goes to nil, once, when Prune
	// has forgotten that.
	prev atomics.Pointer[Changeset[E]]

	// next goes from nil to the successor, once, by the CAS of its Start.
	next atomics.Pointer[Changeset[E]]

	applyState atomics.Pointer[applyState] // nil is idle; see apply.go
	cursor     atomics.Uint64              // how far it is applied; written by whoever is applying

	_ [atomics.CacheLineSize - 40]byte
}

// Receipt says where an entry went. Entries are ordered by Ordinal, and then by Seq, which
// may skip numbers.
//
// No two entries of a tracker have the same receipt. With a Store, a crash loses entries whose Seq
// is not below Changeset.Durable; an entry whose Record returned nil without Config.Async is below
// it. After Resume, new entries may get the receipts of lost ones: if that matters, Start first.
type Receipt struct {
	ChangesetID string
	Ordinal     uint64 // the changeset's
	Seq         uint64 // of the entry or, for a batch, of its first entry; the others follow it
}

// newChangeset returns a changeset that no other goroutine knows yet, to follow prev, or
// to be the first if that is nil.
func newChangeset[E any](t *Tracker[E], prev *Changeset[E], id string) *Changeset[E] {
	c := &Changeset[E]{tracker: t, id: id, ordinal: 1}
	if prev != nil {
		c.prev.Store(prev)
		c.ordinal = prev.ordinal + 1
	}
	c.log.tail.Store(&c.log.head)
	c.log.head.late = 1<<64 - 1 // it has no slots
	if s := t.storage; s != nil {
		c.flusher = &flusher[E]{storage: s, tracker: t, changeset: c, at: c.log.start()}
	}
	return c
}

// ID returns the ID that Config.NewID gave the changeset.
//
// ID is wait-free. It takes effect at once: the ID never changes.
func (c *Changeset[E]) ID() string { return c.id }

// Ordinal returns the changeset's number among its tracker's: 1 is the first.
//
// Ordinal is wait-free. It takes effect at once: the number never changes.
func (c *Changeset[E]) Ordinal() uint64 { return c.ordinal }

// Previous returns the changeset before this one, or nil if there is none or Prune has
// forgotten it.
//
// Previous is wait-free. It takes effect when the link is read.
func (c *Changeset[E]) Previous() *Changeset[E] { return c.prev.Load() } // LP(Previous)

// Next returns the changeset after this one, or nil for the latest. Prune does not change
// it.
//
// Next is lock-free. It takes effect when the link is read or, if the Start of the next
// one has not taken effect by then, when that does.
func (c *Changeset[E]) Next() *Changeset[E] { return c.tracker.next(c) } // LP(Next)

// Record is Tracker.Record for this changeset, whether or not it is the latest. If it is
// sealed, Record adds nothing and returns ErrSealed.
//
// Record is lock-free, and with a Store blocking on that; with Config.Async, only at
// Config.MaxBacklog. It takes effect when the entry's slot is reserved.
func (c *Changeset[E]) Record(e E) (Receipt, error) { return c.record(context.Background(), e) }

// RecordContext is Record with a context that bounds the wait for the Store: see
// Tracker.RecordContext. It panics if ctx is nil.
//
// RecordContext is lock-free, and with a Store blocking as Record is, or until ctx ends.
// It takes effect when the entry's slot is reserved.
func (c *Changeset[E]) RecordContext(ctx context.Context, e E) (Receipt, error) {
	needContext(ctx, "Changeset.RecordContext")
	if ctx.Err() != nil {
		return Receipt{}, context.Cause(ctx)
	}
	return c.record(ctx, e)
}

func (c *Changeset[E]) record(ctx context.Context, e E) (Receipt, error) {
	if c.flusher != nil {
		if err := c.flusher.validate(e); err != nil {
			return Receipt{}, err
		}
		if err := c.flusher.room(ctx); err != nil {
			return Receipt{}, err
		}
	}
	if seq, ok := c.log.append(e); ok { // LP(Record, RecordContext): the addition in log.reserve
		return c.recorded(ctx, seq, 1)
	}
	return Receipt{}, ErrSealed
}

// recorded returns the results of a Record of n entries from seq on, which are in
// memory.
func (c *Changeset[E]) recorded(ctx context.Context, seq, n uint64) (Receipt, error) {
	if c.flusher != nil {
		return c.receipt(seq), c.flusher.recorded(ctx, seq, n)
	}
	return c.receipt(seq), nil
}

func (c *Changeset[E]) receipt(seq uint64) Receipt {
	return Receipt{ChangesetID: c.id, Ordinal: c.ordinal, Seq: seq}
}

// Seal ends the changeset and returns its entries: exactly those that were recorded.
// Sealing again returns an equal Final. If ctx is done, Seal only returns its cause. It
// panics if ctx is nil.
//
// With a Store, Seal returns when the store has the entries and the seal, or with a StoreError
// beside the Final: the changeset is sealed all the same, and another Seal tells the store. If
// Resume has left the entries in the Store, Seal reads and keeps them; if that fails, the Final is
// empty.
//
// Seal is lock-free, and with a Store blocking on that. It takes effect when the seal bit
// is set.
func (c *Changeset[E]) Seal(ctx context.Context) (Final[E], error) {
	needContext(ctx, "Changeset.Seal")
	if ctx.Err() != nil {
		return Final[E]{}, context.Cause(ctx)
	}
	c.log.seal()
	m := c.log.cut()
	if m.unloaded() { // then the store knows of the seal
		return c.fetch(ctx, m)
	}
	if c.flusher == nil {
		return Final[E]{m}, nil
	}
	return Final[E]{m}, c.flusher.await(ctx, target{below: m.n, known: knowsSeal})
}

// fetch reads the entries that were left in the store, and keeps them.
func (c *Changeset[E]) fetch(ctx context.Context, m *cut[E]) (Final[E], error) {
	first, err := c.read(ctx, m)
	if err != nil {
		return Final[E]{}, err
	}
	first = c.log.head.next.Install(first) // or another's, which is as good
	c.log.decided.CompareAndSwap(m, &cut[E]{n: m.n, live: m.live, chunk: first, final: true})
	return Final[E]{c.log.decided.Load()}, nil
}

// Sealed returns a channel that is closed once the changeset is sealed, by the first
// operation that sees the seal.
//
// Sealed is lock-free. It takes effect when the seal bit is read.
func (c *Changeset[E]) Sealed() <-chan struct{} { return c.log.sealing().Done() } // LP(Sealed): in sealing

// IsSealed reports whether the changeset is sealed. A sealed changeset stays sealed.
//
// IsSealed is lock-free. It takes effect when the seal bit is read.
func (c *Changeset[E]) IsSealed() bool { return !c.log.open() } // LP(IsSealed): in open

// Entries yields the entries that the changeset has when the loop begins, in order and
// with their Seq.
//
// If Resume has left them in the Store, each loop reads them there, and panics with a *StoreError
// if that fails. To get the error instead, call Seal or Trail.Fetch first: after these, loops need
// no store. If Prune has forgotten the changeset, such a loop may yield nothing.
//
// Entries is lock-free, and blocking on the Store for what it reads there. It takes effect,
// when a loop over it begins, as the reserved slots are counted.
func (c *Changeset[E]) Entries() iter.Seq2[uint64, E] {
	return func(yield func(uint64, E) bool) {
		c.loop(context.Background(), c.log.cut(), yield)
	}
}

// loop yields the entries of a cut, and reports whether it has come to the end. If they
// were left in the store, and that fails, it panics, unless ctx has ended, or Prune has
// forgotten the changeset: then the store need not have them.
func (c *Changeset[E]) loop(ctx context.Context, m *cut[E], yield func(uint64, E) bool) (more bool) {
	from := c.log.start()
	if m.unloaded() {
		chunk, err := c.read(ctx, m)
		switch {
		case err == nil:
			from.chunk = chunk
		case ctx.Err() != nil:
			return false
		case c.pruned():
			return true
		default:
			panic(err)
		}
	}
	_, more = from.walk(m.n, yield)
	return more
}

// pruned reports whether Prune has forgotten the changeset: then the store need not have it.
func (c *Changeset[E]) pruned() bool { return c.ordinal < c.tracker.first.Load().ordinal }

// Len returns the number of entries that the changeset has.
//
// Len is lock-free. It takes effect when the reserved slots are counted.
func (c *Changeset[E]) Len() int { return c.log.cut().live }

// Final is the contents of a sealed changeset. It never changes, may be copied and
// compared, and is safe for many goroutines. The zero Final is empty.
type Final[E any] struct {
	cut *cut[E] // the final one, and not the log: a Final keeps its entries alive, and nothing else
}

// Len returns the number of entries.
func (f Final[E]) Len() int {
	if f.cut == nil {
		return 0
	}
	return f.cut.live
}

// All yields the entries in order, each with its Seq.
func (f Final[E]) All() iter.Seq2[uint64, E] {
	return func(yield func(uint64, E) bool) {
		if f.cut != nil {
			position[E]{f.cut.chunk, 0}.walk(f.cut.n, yield)
		}
	}
}
