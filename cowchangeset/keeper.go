package cowchangeset

import (
	"context"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// storage is a tracker's store, and how to call it. It never changes but for
// line.
type storage[E any] struct {
	store     Store[E]
	validator Validator[E]  // the store, or nil
	async     bool          // Config.Async
	timeout   time.Duration // Config.StoreTimeout; zero: none

	// line is the turn of the Start that has come last; nil before the first.
	line atomics.Pointer[turn]
}

// validate returns the error of a Record of e, if the store would never take that.
// It runs the store's code, before anything is reserved.
func (s *storage[E]) validate(e E) error {
	if s.validator == nil {
		return nil
	}
	if err := s.validator.Validate(e); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// validateBatch is validate for all of es.
func (s *storage[E]) validateBatch(es []E) error {
	if s.validator == nil {
		return nil
	}
	for i, e := range es {
		if err := s.validator.Validate(e); err != nil {
			return fmt.Errorf("%w at index %d of a batch: %w", ErrRefused, i, err)
		}
	}
	return nil
}

// keeper brings the store up to date with one changeset, in rounds: one at a
// time, each on a goroutine of its own that ends with it. A round takes a cut,
// and makes one call of the store: of the entries up to there, as far as one call
// takes them, or else of what follows. So whoever waits for an entry shares a call
// with those that came before the cut, and does not wait for the next one.
type keeper[E any] struct {
	*storage[E]
	of *Changeset[E]

	// round is the one that is on: from nil by the CAS of whoever needs it,
	// back to nil by its own goroutine.
	round atomics.Pointer[round]

	// durable is the index below which the store has all entries, told has a
	// bit for each of what else it knows, and applied is what it knows as an
	// Applier. Only rounds write them, and only upwards.
	durable atomics.Uint64
	told    atomics.Uint32
	applied atomics.Uint64 // what it was told as Applier

	// The round's own, and the next one's after it.
	at   position[E] // of durable
	last uint64      // the Seq of the last entry before that, or 0
}

const (
	toldSeal uint32 = 1 << iota
	toldAbort
)

// goal is what somebody wants the store to know.
type goal struct {
	n       uint64 // all entries below this index
	told    uint32
	applied uint64
}

// within reports whether who knows h knows all of g.
func (g goal) within(h goal) bool {
	return g.n <= h.n && g.told&^h.told == 0 && g.applied <= h.applied
}

// round is one pass of the store over what is new.
type round struct {
	goal // what it is for; set before anyone else can see the end

	method string // the round's own

	again atomics.Bool // somebody has something new, perhaps after the cut

	done    atomics.Event            // fired when there is an outcome
	outcome atomics.Pointer[outcome] // nil → how the round has ended, or that it takes too long; once, by CAS
}

// outcome is how a round ended for those who wait.
type outcome struct {
	err   error
	hangs bool // the round goes on
}

// end makes the outcome known, if there is none yet.
func (r *round) end(err error, hangs bool) {
	if r.outcome.CompareAndSwap(nil, &outcome{err, hangs}) {
		r.done.Fire()
	}
}

// has reports whether the store knows all of g.
func (k *keeper[E]) has(g goal) bool {
	return g.n <= k.durable.Load() && (g.told == 0 || g.told&^k.told.Load() == 0) && (g.applied == 0 || g.applied <= k.applied.Load())
}

// recorded follows a Record of n entries from seq on: it waits until they are
// durable, or sees to it that they will be.
func (k *keeper[E]) recorded(seq, n uint64) error {
	if k.async {
		k.kick()
		return nil
	}
	return k.until(context.Background(), goal{n: seq + n})
}

// until waits until the store knows all of g. It returns an error if a round
// that should have told it has failed, or takes too long, or if ctx has ended. In
// the last two cases the store is told when the round has ended.
//
// It goes round again only if a round has ended that began too early for g, or
// that had something to tell which comes before.
func (k *keeper[E]) until(ctx context.Context, g goal) error {
	for !k.has(g) {
		r := k.round.Load()
		if r == nil {
			if r = k.begin(); r == nil {
				continue // another caller has begun one
			}
		}
		if err := r.done.WaitContext(ctx); err != nil {
			if k.has(g) {
				break
			}
			k.kick() // who leaves has been heard
			return k.failed("wait", context.Cause(ctx))
		}
		if o := r.outcome.Load(); o.err != nil && (o.hangs || g.within(r.goal)) && !k.has(g) {
			if o.hangs {
				k.kick()
			}
			return o.err
		}
	}
	return nil
}

// kick sees to it that a round begins after this, and waits for nothing.
//
// Nothing is stranded: a round that is seen to be on is asked to be followed by
// another one, and asked in time if it still is on afterwards. If not, one that
// has begun since then has begun after this.
func (k *keeper[E]) kick() {
	if r := k.round.Load(); r != nil {
		if !r.again.Load() {
			r.again.Store(true)
		}
		if k.round.Load() != nil {
			return
		}
	}
	k.begin()
}

// begin begins a round, or returns nil if there is one.
func (k *keeper[E]) begin() *round {
	r := &round{done: atomics.MakeEvent()}
	if !k.round.CompareAndSwap(nil, r) {
		return nil
	}
	atomics.Go(func() { k.run(r) })
	return r
}

// run is a round, from its beginning to the moment at which the next may begin.
func (k *keeper[E]) run(r *round) {
	err := errStoreExited
	defer func() {
		err = k.explain(r.method, err, recover())
		k.round.Store(nil)
		r.end(err, false)
		if r.again.Load() {
			k.begin() // or another caller has
		}
	}()
	err = k.catchUp(r)
}

// maxAppend bounds how many entries a call of Append has, but for batches,
// which it never splits.
func maxAppend() int { return atomics.Limit(4096, 1) }

// catchUp tells the store the first of what is new, and asks for another round if
// that is not all.
func (k *keeper[E]) catchUp(r *round) error {
	c := k.of
	m := c.cut()
	r.goal = c.due(m)
	if k.durable.Load() < m.n {
		next, entries := k.at.collect(m.n, maxAppend())
		if len(entries) > 0 {
			if err := k.call(r, "Append", func(ctx context.Context) error { return k.store.Append(ctx, c.id, entries) }); err != nil {
				return err
			}
			k.last = entries[len(entries)-1].Seq
		}
		k.at = next
		k.durable.Store(next.i)
		if !k.has(r.goal) {
			r.again.Store(true) // one call in a round: who waits for these entries waits for no more
		}
		return nil
	}
	switch due := r.told &^ k.told.Load(); {
	case due&toldSeal != 0:
		manifest := Manifest{Len: m.live, Last: k.last}
		if err := k.call(r, "Seal", func(ctx context.Context) error { return k.store.Seal(ctx, c.id, manifest) }); err != nil {
			return err
		}
		k.told.Or(toldSeal)
	case r.goal.applied > k.applied.Load():
		next, applier := r.goal.applied, k.store.(Applier)
		if err := k.call(r, "Applied", func(ctx context.Context) error { return applier.Applied(ctx, c.id, next) }); err != nil {
			return err
		}
		k.applied.Store(next)
	case due&toldAbort != 0:
		if err := k.call(r, "Abort", func(ctx context.Context) error { return k.store.Abort(ctx, c.id, c.fate.Load().reason) }); err != nil {
			return err
		}
		k.told.Or(toldAbort)
	}
	if !k.has(r.goal) {
		r.again.Store(true)
	}
	return nil
}

// due returns what a store should know when the changeset is cut at m.
func (c *Changeset[E]) due(m *mark[E]) goal {
	g := goal{n: m.n}
	if m.final {
		g.told = toldSeal
		if c.fate.Load().in() == aborted {
			g.told |= toldAbort
		}
		if _, ok := c.keep.store.(Applier); ok {
			g.applied = c.cursor.Load()
		}
	}
	return g
}

// call calls the store. If that takes too long, those who wait for r need not
// wait any more; the call is waited for nevertheless.
func (k *keeper[E]) call(r *round, method string, f func(context.Context) error) error {
	r.method = method
	ctx, leave, stop := k.bound(r, method)
	defer stop()
	err := f(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		leave() // or who waits would hear of an end that is not of their own context
	}
	return k.failed(method, err)
}

// bound returns the context of a call, and what happens when that takes too long.
func (k *keeper[E]) bound(r *round, method string) (ctx context.Context, leave, stop func()) {
	if k.timeout == 0 {
		ctx, cancel := atomics.WithCancel(context.Background())
		return ctx, func() {}, cancel
	}
	slow := k.failed(method, errStoreHangs)
	ctx, cancel := atomics.WithTimeoutCause(context.Background(), k.timeout, slow)
	leave = func() { r.end(slow, true) }
	unwatched := atomics.AfterFunc(ctx, leave)
	return ctx, leave, func() { unwatched(); cancel() }
}

// explain returns how a call of the store ended that may have panicked, or left
// its goroutine.
func (k *keeper[E]) explain(method string, err error, thrown any) error {
	switch {
	case thrown != nil:
		return k.failed(method, panicked{thrown})
	case err == errStoreExited:
		return k.failed(method, err)
	}
	return err
}

// panicked is a panic of a store. It runs no code of the value before somebody
// asks for the text.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Unwrap returns the value, if it is an error.
func (p panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// failed returns the error of a store that has failed.
func (k *keeper[E]) failed(method string, err error) error {
	return &StoreError{ChangesetID: k.of.id, Method: method, Err: err}
}
