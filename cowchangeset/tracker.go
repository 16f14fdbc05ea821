package cowchangeset

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Tracker is a sequence of changesets, of which only the latest accepts entries. The
// zero value is ready to use. A Tracker must not be copied after first use.
type Tracker[E any] struct {
	_ atomics.NoCopy

	// current is the latest changeset or, for moments, one before it. It goes
	// from nil along the links, by CAS, and reaches no changeset before the
	// one ahead of it is sealed.
	current atomics.Pointer[Changeset[E]]

	// first is the link to the first changeset. It goes from nil to that, once,
	// and on along the links when Prune forgets changesets: never past current.
	first atomics.Pointer[Changeset[E]]

	starts atomics.Waker // for Follow loops that wait for the next Start

	// These are immutable.
	newID          func(context.Context) (string, error) // nil means the default
	pruneUnapplied bool
	storage        *storage[E] // nil without a store
}

// Each changeset links to its successor, and the tracker to the first. A Start takes
// three steps, and any goroutine that sees the first helps with the others:
//
//  1. announce: the latest changeset's link goes from nil to the successor;
//  2. seal the latest changeset: now the successor is the latest;
//  3. swing the tracker's current pointer to the successor.
//
// So a Record that finds a changeset sealed by a Start finds its successor, and
// everything before a visible successor is complete.

// link returns the link to the successor of c, or to the first changeset if c
// is nil.
func (t *Tracker[E]) link(c *Changeset[E]) *atomics.Pointer[Changeset[E]] {
	if c == nil {
		return &t.first
	}
	return &c.next
}

// Start begins a new changeset, which becomes the latest, and seals the one before it, in
// one step. If ctx is done, or NewID or the Store fails, nothing changes. Start panics if
// ctx is nil.
//
// Start is lock-free, and with a Store blocking on that. It takes effect when the
// changeset before the new one is sealed or, if that was sealed already or there is none,
// when the new one is announced.
func (t *Tracker[E]) Start(ctx context.Context) (*Changeset[E], error) {
	needContext(ctx, "Tracker.Start")
	return t.start(ctx, false, nil)
}

// StartAfter is Start on the condition that prev is the latest changeset, or that there is
// none if prev is nil. Otherwise it returns ErrConflict and nothing changes.
//
// StartAfter is lock-free, and with a Store blocking on that. It takes effect as Start
// does or, on a conflict, when another changeset is seen to be the latest.
func (t *Tracker[E]) StartAfter(ctx context.Context, prev *Changeset[E]) (*Changeset[E], error) {
	needContext(ctx, "Tracker.StartAfter")
	if ctx.Err() == nil && t.latest() != prev {
		return nil, ErrConflict // LP(StartAfter): conflict, known before an ID is spent
	}
	return t.start(ctx, true, prev)
}

// start is Start or, if conditional is true, StartAfter prev.
func (t *Tracker[E]) start(ctx context.Context, conditional bool, prev *Changeset[E]) (*Changeset[E], error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	id := ""
	if t.newID == nil {
		id = rand.Text()
	} else {
		var err error
		if id, err = t.newID(ctx); err != nil { // user code
			return nil, err
		}
		if id == "" {
			return nil, errEmptyID
		}
		if ctx.Err() != nil { // NewID may have taken its time
			return nil, context.Cause(ctx)
		}
	}
	if t.storage != nil {
		return t.startStored(ctx, id, conditional, prev)
	}
	for {
		c := t.latest()
		if conditional && c != prev {
			return nil, ErrConflict // LP(StartAfter): conflict, in latest
		}
		n := newChangeset(t, c, id)
		if t.link(c).CompareAndSwap(nil, n) { // LP(Start, StartAfter): if the latest is nil or sealed
			t.succeed(c, n)
			return n, nil
		}
		// Another Start announced its changeset first.
	}
}

// succeed puts n, the announced successor, in the place of c. The seal comes
// before the swing: nobody reaches a changeset while the one before it accepts
// entries.
func (t *Tracker[E]) succeed(c, n *Changeset[E]) {
	if c != nil {
		c.log.seal() // LP(Start): if c was open
	}
	t.starts.Wake()                // before the swing: where that is done, nobody sleeps
	t.current.CompareAndSwap(c, n) // fails if another helper was faster
}

// next returns the successor of c, or the first changeset if c is nil, after helping
// its Start; or nil if there is none. The current pointer has reached c.
func (t *Tracker[E]) next(c *Changeset[E]) *Changeset[E] {
	n := t.link(c).Load()
	if n != nil && t.current.Load() == c {
		t.succeed(c, n)
	}
	return n
}

// latest returns the latest changeset, or nil if there is none, after helping all
// announced Starts.
func (t *Tracker[E]) latest() *Changeset[E] {
	for {
		c := t.current.Load()
		n := t.link(c).Load() // LP(latest): nil
		if n == nil {
			return c
		}
		t.succeed(c, n) // a Start took effect
	}
}

// Record adds e to the latest changeset, which the receipt names. It returns ErrNoActive
// if there is none yet, and an error that also matches ErrSealed if the latest one is
// sealed.
//
// From the call on, nothing that e refers to may be changed. With a Store, Record returns when the
// store has the entry, or with a StoreError beside the receipt: then e is recorded all the same,
// unless the error matches ErrBacklogFull. See Config.Async. If the store refuses e, the error
// matches ErrRefused and the store's, and nothing is recorded.
//
// Record is lock-free, and with a Store blocking on that; with Config.Async, only at
// Config.MaxBacklog. It takes effect when the entry's slot is reserved.
func (t *Tracker[E]) Record(e E) (Receipt, error) { return t.record(context.Background(), e) }

// RecordContext is Record with a context that bounds the wait for the Store. When ctx ends, it
// returns a StoreError with Method "wait" beside the receipt: the entry is recorded, and the store
// gets it later, unless the error matches ErrBacklogFull. If ctx is done beforehand, it records
// nothing and returns the cause. It panics if ctx is nil.
//
// RecordContext is lock-free, and with a Store blocking as Record is, or until ctx ends.
// It takes effect when the entry's slot is reserved.
func (t *Tracker[E]) RecordContext(ctx context.Context, e E) (Receipt, error) {
	needContext(ctx, "Tracker.RecordContext")
	if ctx.Err() != nil {
		return Receipt{}, context.Cause(ctx)
	}
	return t.record(ctx, e)
}

func (t *Tracker[E]) record(ctx context.Context, e E) (Receipt, error) {
	if t.storage != nil {
		if err := t.storage.validate(e); err != nil {
			return Receipt{}, err
		}
	}
	for {
		c := t.current.Load()
		if c != nil {
			if c.flusher != nil {
				if err := c.flusher.room(ctx); err != nil {
					return Receipt{}, err
				}
			}
			if seq, ok := c.log.append(e); ok { // LP(Record, RecordContext): the addition in log.reserve
				return c.recorded(ctx, seq, 1)
			}
		}
		if err := t.advance(c); err != nil {
			return Receipt{}, err
		}
		// A Start took effect.
	}
}

// RecordBatch adds es to the latest changeset, next to each other: all or none. An empty batch
// changes nothing and returns the zero Receipt. RecordBatch panics if there are more than 2^40
// entries. Beside readers that cut all the time it writes a large batch several times.
//
// RecordBatch is lock-free, and with a Store blocking as Record is. It takes effect when
// the entries' slots are reserved.
func (t *Tracker[E]) RecordBatch(es []E) (Receipt, error) {
	return t.recordBatch(context.Background(), es)
}

// RecordBatchContext is RecordBatch with a context that bounds the wait for the Store, as in
// RecordContext.
//
// RecordBatchContext is lock-free, and with a Store blocking as Record is, or until ctx
// ends. It takes effect when the entries' slots are reserved.
func (t *Tracker[E]) RecordBatchContext(ctx context.Context, es []E) (Receipt, error) {
	needContext(ctx, "Tracker.RecordBatchContext")
	if ctx.Err() != nil {
		return Receipt{}, context.Cause(ctx)
	}
	return t.recordBatch(ctx, es)
}

func (t *Tracker[E]) recordBatch(ctx context.Context, es []E) (Receipt, error) {
	if len(es) == 0 {
		return Receipt{}, nil
	}
	if uint64(len(es)) > maxBatch {
		panic("cowchangeset: Tracker.RecordBatch called with more than 2^40 entries")
	}
	if t.storage != nil && t.storage.validator != nil {
		for i, e := range es {
			if err := t.storage.validator.Validate(e); err != nil {
				return Receipt{}, fmt.Errorf("%w at index %d of a batch: %w", ErrRefused, i, err)
			}
		}
	}
	for {
		c := t.current.Load()
		if c != nil {
			if c.flusher != nil {
				if err := c.flusher.room(ctx); err != nil {
					return Receipt{}, err
				}
			}
			if seq, ok := c.log.appendBatch(es); ok { // LP(RecordBatch, RecordBatchContext)
				return c.recorded(ctx, seq, uint64(len(es)))
			}
		}
		if err := t.advance(c); err != nil {
			return Receipt{}, err
		}
		// A Start took effect.
	}
}

// advance moves the tracker on from c, which is nil or sealed, or returns the
// error that says that nothing follows it.
func (t *Tracker[E]) advance(c *Changeset[E]) error {
	if t.next(c) != nil { // LP(Record, RecordBatch): ErrNoActive, if nothing was announced
		return nil
	}
	if c == nil {
		return ErrNoActive
	}
	return &NoActiveError{ChangesetID: c.id, Ordinal: c.ordinal}
}

// Current returns the latest changeset, or nil if there is none yet, and whether it
// accepts entries.
//
// Current is lock-free. It takes effect when the changeset is seen to be open, or to
// have no successor.
func (t *Tracker[E]) Current() (*Changeset[E], bool) {
	for {
		c := t.current.Load()
		if c != nil && c.log.open() { // LP(Current): an open changeset is the latest
			return c, true
		}
		if t.next(c) == nil {
			return c, false // LP(Current): sealed, and the last; or none
		}
		// A Start took effect.
	}
}

// With a store, one Start at a time tells it of the changeset, and then announces that.
// So the store learns of changesets in the order of their ordinals. It learns of no
// changeset that does not come into being, unless its answer is an error or too late.
//
// All of this runs on a goroutine of the Start's own, which does not use the caller's
// context: that is the caller's code, and may stall, while others wait for their
// tickets. The caller only waits for the outcome.

// starting is a Start with a store.
type starting[E any] struct {
	flush // how it has ended, or that the store takes too long

	id          string
	conditional bool          // only if prev is the latest
	prev        *Changeset[E] // of StartAfter
	made        *Changeset[E] // the changeset, once the Start has its ticket

	// settled is set by the store's success and by a caller that leaves. The second of
	// them sees the first: the changeset comes into being if the store was first.
	settled atomics.Bool
}

// startStored is start with a store.
func (t *Tracker[E]) startStored(ctx context.Context, id string, conditional bool, prev *Changeset[E]) (started *Changeset[E], err error) {
	s := &starting[E]{flush: flush{ended: atomics.MakeEvent()}, id: id, conditional: conditional, prev: prev}
	inLine, leave := atomics.WithCancel(context.Background())
	atomics.Go(func() { t.startNext(inLine, s) })
	err = errStoreExited // and remains so if ctx panics or calls runtime.Goexit
	defer func() {
		if err == nil {
			return
		}
		leave()
		if s.settled.Swap(true) { // it has succeeded in time after all
			t.appear(s.made)
			started, err = s.made, nil
		}
	}()
	if s.ended.WaitContext(ctx) != nil {
		return nil, &StoreError{ChangesetID: id, Method: "wait", Err: context.Cause(ctx)}
	}
	if err := s.outcome.Load().err; err != nil {
		return nil, err
	}
	return s.made, nil
}

// startNext waits for its ticket, tells the store, and makes the changeset the latest
// one, unless the caller has left by then. It releases the ticket when the store has
// returned, even if that takes too long.
func (t *Tracker[E]) startNext(inLine context.Context, s *starting[E]) {
	mine, err := t.storage.enqueue(inLine)
	if err != nil {
		s.end(&StoreError{ChangesetID: s.id, Method: "wait", Err: err}, false)
		return
	}
	latest := t.latest() // and remains so: nobody else has a ticket
	s.made = newChangeset(t, latest, s.id)
	f := s.made.flusher
	f.protect(&s.flush, func() error {
		switch {
		case s.settled.Load():
			return nil // the caller has left
		case s.conditional && latest != s.prev:
			return ErrConflict // LP(StartAfter): conflict, in latest
		}
		h := Header{ID: s.id, Ordinal: s.made.ordinal}
		if latest != nil {
			h.Previous = latest.id
		}
		return f.call(&s.flush, "Start", func(ctx context.Context) error { return t.storage.store.Start(ctx, h) })
	}, func(err error) {
		if err == nil && !s.settled.Swap(true) {
			t.appear(s.made)
			if latest != nil {
				latest.flusher.request() // so that the store knows at once that it is sealed
			}
		}
		mine.released.Fire()
		s.end(err, false)
	})
}

// appear makes n the latest changeset, as anybody does that knows that its Start is
// settled. That still has its ticket, so that nobody else announces.
func (t *Tracker[E]) appear(n *Changeset[E]) {
	c := n.prev.Load()
	t.link(c).CompareAndSwap(nil, n) // LP(Start): if the latest is nil or sealed
	t.succeed(c, n)
}

// ticket is a place in the queue of Starts that want to call Store.Start.
type ticket struct {
	released atomics.Event // fired by the owner
	ahead    *ticket       // the ticket to wait for instead, if the owner left the queue; set before released is fired
}

// enqueue waits for the caller's turn to call Store.Start and returns its ticket: first
// come, first served. A caller that leaves the queue, because ctx has ended, makes the
// next one wait for those ahead. Ctx is not a user's.
func (s *storage[E]) enqueue(ctx context.Context) (*ticket, error) {
	if s.timeout > 0 {
		bounded, cancel := atomics.WithTimeoutCause(ctx, s.timeout, ErrStoreTimeout)
		defer cancel()
		ctx = bounded
	}
	mine := &ticket{released: atomics.MakeEvent()}
	for ahead := s.lastTicket.Swap(mine); ahead != nil; ahead = ahead.ahead {
		if !ahead.released.Fired() && ahead.released.WaitContext(ctx) != nil {
			mine.ahead = ahead
			mine.released.Fire()
			return nil, context.Cause(ctx)
		}
	}
	return mine, nil
}
