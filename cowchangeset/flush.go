package cowchangeset

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Flush returns nil when the Store has all entries that were recorded before, and knows of
// all that was sealed, applied, aborted or forgotten; of changesets that Prune has forgotten it
// asks nothing more. Otherwise it returns all StoreErrors that it met. It panics if ctx is nil.
//
// Flush is blocking: it waits for the Store or until ctx ends. It takes effect for each
// changeset when its reserved slots are counted.
func (t *Tracker[E]) Flush(ctx context.Context) error {
	needContext(ctx, "Tracker.Flush")
	if t.storage == nil {
		return nil
	}
	var failed error
	for c := t.first.Load(); c != nil; c = c.next.Load() {
		if err := c.flushed(ctx); err != nil { // LP(Flush): its cut
			failed = errors.Join(failed, err)
			if ctx.Err() != nil {
				return failed
			}
		}
	}
	if t.storage.pruner != nil {
		failed = errors.Join(failed, t.storage.pruner.await(ctx, t.forgotten()))
	}
	return failed
}

// Durable returns how much of the changeset the Store has: every entry with a Seq below the result.
// Without a Store the result is zero.
//
// Durable is wait-free. It takes effect when the number is read.
func (c *Changeset[E]) Durable() uint64 {
	if c.flusher == nil {
		return 0
	}
	return c.flusher.durable.Load() // LP(Durable)
}

// storage is a tracker's store, and how to call it. It never changes, except for
// owed, tried and lastTicket.
type storage[E any] struct {
	store      Store[E]
	validator  Validator[E]  // the store, or nil
	async      bool          // Config.Async
	maxBacklog uint64        // Config.MaxBacklog; zero: none, or not async
	reject     bool          // Config.RejectWhenFull
	timeout    time.Duration // Config.StoreTimeout; zero: none

	pruner *flusher[E] // tells the store what the tracker has forgotten; nil if it is no Pruner

	// owed says that a flush of a changeset before the latest may have failed, in which nobody
	// records any more. A caller of retry clears it before it looks. Tried is only where the next
	// one looks first: behind the changeset of this ordinal.
	owed  atomics.Bool
	tried atomics.Uint64

	// lastTicket is the ticket of the Start that has come last, which swaps it in; nil
	// before the first.
	lastTicket atomics.Pointer[ticket]
}

// validate returns the error of a Record of e, if the store would never take it. It runs
// the store's code, before anything is reserved.
func (s *storage[E]) validate(e E) error {
	if s.validator == nil {
		return nil
	}
	if err := s.validator.Validate(e); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// flusher brings the store up to date with one changeset, in flushes. A flush takes a
// cut, and makes one call of the store: of the entries up to the cut, as far as one
// call takes them, or else of the seal, of how far it is applied, or of its abort. So a
// caller that waits for an entry shares a call with the entries that came before the
// cut, and does not wait for the next call.
//
// One flush runs at a time, on a goroutine of its own that ends with it. A caller that
// waits for something begins a flush, or waits for the running one and looks again.
//
// Another flusher, without a changeset, tells the store what the tracker has forgotten: a
// store that prunes slowly delays nobody but a Flush.
type flusher[E any] struct {
	*storage[E]
	tracker   *Tracker[E]
	changeset *Changeset[E] // nil for pruning

	// durable is the index below which the store has all entries or, of pruning, the
	// ordinal below which it knows all changesets to be forgotten. Known has a bit for
	// each of the other things that it knows, and applied is the last number that it
	// was told as an Applier. Only flushes write them, and only upwards.
	durable atomics.Uint64
	known   atomics.Uint32
	applied atomics.Uint64

	// current is the running flush: from nil by the CAS of a caller that needs one,
	// back to nil by its own goroutine.
	current atomics.Pointer[flush]

	// Only the running flush uses these.
	at     position[E] // of durable
	last   uint64      // the Seq of the last entry before that, or 0
	expect uint64      // of reserved, when all callers that the last Append has released have recorded again
}

const (
	knowsSeal uint32 = 1 << iota
	knowsAbort
)

// target says up to where the store is to know things.
type target struct {
	below   uint64 // as durable
	known   uint32
	applied uint64
}

// within reports whether h has all of t.
func (t target) within(h target) bool {
	return t.below <= h.below && t.known&^h.known == 0 && t.applied <= h.applied
}

// has reports whether the store knows all of t.
func (f *flusher[E]) has(t target) bool {
	return t.within(target{f.durable.Load(), f.known.Load(), f.applied.Load()})
}

// flush makes the next due call of the store, if there is one.
type flush struct {
	target // set before anyone else can see the end

	method string // that is called; only the flush uses it

	again atomics.Bool // set by callers: something is due, perhaps since the cut

	ended   atomics.Event            // fired when there is an outcome
	outcome atomics.Pointer[outcome] // nil → how the flush has ended, or that it takes too long; once, by CAS
}

// outcome is the end of a flush for its waiters.
type outcome struct {
	err   error
	hangs bool // the flush goes on
}

// end publishes the outcome, if there is none yet.
func (f *flush) end(err error, hangs bool) {
	if f.outcome.CompareAndSwap(nil, &outcome{err, hangs}) {
		f.ended.Fire()
	}
}

// room waits until the store is less than maxBacklog entries behind or, with
// Config.RejectWhenFull, only looks. A sealed changeset has room: its log says no.
func (f *flusher[E]) room(ctx context.Context) error {
	if f.maxBacklog == 0 {
		return nil
	}
	durable := f.durable.Load() // before reserved, which is never less
	n := f.changeset.log.reserved.Load()
	if n&sealed != 0 || n-durable < f.maxBacklog {
		return nil
	}
	if f.reject {
		f.request() // or, after a failure, nobody would
		return ErrBacklogFull
	}
	m := f.changeset.log.cut() // a sealed log may end before what was reserved
	if m.final {
		return nil
	}
	if err := f.await(ctx, target{below: m.n - f.maxBacklog + 1}); err != nil && f.changeset.log.reserved.Load()&sealed == 0 {
		return fmt.Errorf("%w: %w", ErrBacklogFull, err)
	}
	return nil
}

// recorded completes a Record of n entries from seq on: it waits until they are durable
// or ctx has ended or, with Config.Async, requests a flush.
func (f *flusher[E]) recorded(ctx context.Context, seq, n uint64) error {
	f.tracker.retry()
	if f.async {
		f.request()
		return nil
	}
	return f.await(ctx, target{below: seq + n})
}

// retry requests a flush of a changeset before the latest of which the store lacks something, if a flush has failed.
// When it succeeds, its end retries another: so each call tries one, in turn, while the store fails, and one call is
// enough when it does not. A changeset that the store always refuses keeps no other back.
func (t *Tracker[E]) retry() {
	s := t.storage
	if !s.owed.Load() {
		return
	}
	s.owed.Store(false) // first: what fails while this call looks says so again
	next := t.lacking(s.tried.Load())
	if next == nil {
		next = t.lacking(0)
	}
	if next != nil {
		s.owed.Store(true)
		s.tried.Store(next.ordinal)
		next.flusher.request()
	}
}

// lacking returns the oldest changeset above an ordinal, and before the latest, of which the store lacks something,
// or nil. There is a changeset.
func (t *Tracker[E]) lacking(above uint64) *Changeset[E] {
	for c := t.first.Load(); c.next.Load() != nil; c = c.next.Load() {
		if c.ordinal > above && !c.stored() {
			return c
		}
	}
	return nil
}

// await waits until the store knows all of t. It returns an error if a flush that
// covers t has failed, or takes too long, or if ctx has ended. In the last two cases
// another flush follows the running one; and also if ctx, which may be a user's,
// panics, stalls or ends the goroutine.
//
// It repeats only after a flush that began too early for t, or that had to
// make an earlier call first.
func (f *flusher[E]) await(ctx context.Context, t target) error {
	for !f.has(t) {
		running := f.current.Load()
		if running == nil {
			if running = f.begin(); running == nil {
				continue // another caller has begun one
			}
		} else if ctx != context.Background() {
			f.request() // the flush may have begun too early, and a user's context may keep the caller
		}
		if err := running.ended.WaitContext(ctx); err != nil {
			if f.has(t) {
				break
			}
			f.request() // a caller that leaves still wants t
			return f.failed("wait", context.Cause(ctx))
		}
		if o := running.outcome.Load(); o.err != nil && (o.hangs || t.within(running.target)) && !f.has(t) {
			if o.hangs {
				f.request()
			}
			return o.err
		}
	}
	return nil
}

// request makes sure that a flush begins after this, and does not wait.
//
// No request is lost: the caller asks the running flush to be followed by another one,
// and then looks whether it still runs. If so, the flush sees the request at its end.
// If not, a flush that runs now has begun after this.
func (f *flusher[E]) request() {
	if running := f.current.Load(); running != nil {
		if !running.again.Load() {
			running.again.Store(true)
		}
		if f.current.Load() != nil {
			return
		}
	}
	f.begin()
}

// begin begins a flush, or returns nil if one runs.
func (f *flusher[E]) begin() *flush {
	running := &flush{ended: atomics.MakeEvent()}
	if !f.current.CompareAndSwap(nil, running) {
		return nil
	}
	atomics.Go(func() { f.run(running) })
	return running
}

// run is a flush, from its beginning to the moment when the next one may begin.
func (f *flusher[E]) run(running *flush) {
	f.protect(running, func() error { return f.flushNext(running) }, func(err error) {
		older := f.changeset != nil && f.changeset.next.Load() != nil // for the latest one Start asks again
		if err != nil && older {
			f.owed.Store(true)
		}
		f.current.Store(nil)
		running.end(err, false)
		switch {
		case running.again.Load():
			f.begin() // or another caller has
		case err == nil && older:
			f.tracker.retry()
		}
	})
}

// maxAppend bounds how many entries a call of Append has, but for batches,
// which it never splits.
func maxAppend() int { return atomics.Limit(4096, 1) }

// gatherYields bounds how often a flush yields. In the model, none does.
func gatherYields() int { return atomics.Limit(2, 0) }

// gather lets the callers that the last Append has released come back. They record again
// as soon as they run; a flush that began before them would make each wait for two.
//
// For a single entry it yields once in any case. The runtime goes on with whom a
// goroutine wakes or starts: so on one processor a recorder and its flushes would
// alternate, and nobody else would run.
func (f *flusher[E]) gather() {
	for i := range gatherYields() {
		expect := f.expect
		if i == 0 {
			expect = max(expect, f.durable.Load()+2)
		}
		if f.changeset.log.reserved.Load() >= expect {
			return
		}
		runtime.Gosched()
	}
}

// flushNext makes the next call of the store that is due, and asks for another flush if
// more is due.
func (f *flusher[E]) flushNext(running *flush) error {
	c := f.changeset
	if c == nil {
		return f.flushPrune(running)
	}
	f.gather()
	m := c.log.cut()
	running.target = c.due(m)
	var err error
	switch due := running.known &^ f.known.Load(); {
	case f.durable.Load() < m.n:
		next, entries := f.at.collect(m.n, maxAppend())
		if len(entries) > 0 {
			if err = f.call(running, "Append", func(ctx context.Context) error { return f.store.Append(ctx, c.id, entries) }); err != nil {
				return err
			}
			f.last = entries[len(entries)-1].Seq
		}
		f.expect, f.at = c.log.reserved.Load()+next.i-f.at.i, next
		f.durable.Store(next.i)
	case due&knowsSeal != 0:
		manifest := Manifest{Len: m.live, Last: f.last}
		if err = f.call(running, "Seal", func(ctx context.Context) error { return f.store.Seal(ctx, c.id, manifest) }); err == nil {
			f.known.Or(knowsSeal)
		}
	case running.target.applied > f.applied.Load():
		next, applier := running.target.applied, f.store.(Applier)
		if err = f.call(running, "Applied", func(ctx context.Context) error { return applier.Applied(ctx, c.id, next) }); err == nil {
			f.applied.Store(next)
		}
	case due&knowsAbort != 0:
		if err = f.call(running, "Abort", func(ctx context.Context) error { return f.store.Abort(ctx, c.id, c.applyState.Load().reason) }); err == nil {
			f.known.Or(knowsAbort)
		}
	}
	if err == nil && !f.has(running.target) {
		running.again.Store(true) // one call in a flush: callers that wait for this one wait for no more
	}
	return err
}

// due returns all that a store should know when the changeset is cut at m.
func (c *Changeset[E]) due(m *cut[E]) target {
	t := target{below: m.n}
	if m.final {
		t.known = knowsSeal
		if c.applyState.Load().phaseNow() == aborted {
			t.known |= knowsAbort
		}
		if _, ok := c.flusher.store.(Applier); ok {
			t.applied = c.cursor.Load()
		}
	}
	return t
}

// call calls the store. If that takes too long, the waiters of the flush stop waiting;
// call itself waits for the store.
func (f *flusher[E]) call(running *flush, method string, store func(context.Context) error) error {
	running.method = method
	ctx, release := context.Background(), func() {}
	if f.timeout > 0 {
		slow := f.failed(method, ErrStoreTimeout)
		bounded, cancel := atomics.WithTimeoutCause(ctx, f.timeout, slow)
		defer cancel()
		ctx, release = bounded, func() { running.end(slow, true) }
		defer atomics.AfterFunc(ctx, release)()
	}
	err := store(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		release() // or waiters would get the error of a context that is not their own
	}
	return f.failed(method, err)
}

// protect runs call, which calls the store, and then the function then with its error,
// also if it panics or ends the goroutine.
func (f *flusher[E]) protect(running *flush, call func() error, then func(error)) {
	err := errStoreExited
	defer func() {
		if thrown := recover(); thrown != nil {
			err = f.failed(running.method, panicked{thrown})
		} else if err == errStoreExited {
			err = f.failed(running.method, err)
		}
		then(err)
	}()
	err = call()
}

// panicked is a panic of a store. It runs no code of the value until somebody asks for
// the text.
type panicked struct{ value any }

func (p panicked) Error() string { return "panic: " + fmt.Sprint(p.value) }

// Unwrap returns the value, if it is an error.
func (p panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// failed returns the error of a failed call of the store.
func (f *flusher[E]) failed(method string, err error) error {
	failed := &StoreError{Method: method, Err: err}
	if f.changeset != nil {
		failed.ChangesetID = f.changeset.id
	}
	return failed
}
