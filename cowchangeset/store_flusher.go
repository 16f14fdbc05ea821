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
	validator Validator[E] // the store, or nil
	async     bool         // Config.Async
	pruning   *pruning[E]  // nil if the store is no Pruner
	calls
}

// calls is what calls of the store have in common, whatever the entries are: code
// that needs no more is compiled once for all types of them.
type calls struct {
	timeout time.Duration // Config.StoreTimeout; zero: none

	// lastTicket is that of the Start that has come last; nil before the first.
	lastTicket atomics.Pointer[ticket]
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

// flusher brings the store up to date with one changeset, in flushes. A flush takes a
// cut, and makes one call of the store: of the entries up to there, as far as one
// call takes them, or else of what follows. So whoever waits for an entry shares a
// call with those that came before the cut, and does not wait for the next one.
type flusher[E any] struct {
	flushes
	*storage[E]
	of *Changeset[E]

	// durable is the index below which the store has all entries, told has a
	// bit for each of what else it knows, and applied is what it knows as an
	// Applier. Only flushes write them, and only upwards.
	durable atomics.Uint64
	known   atomics.Uint32
	applied atomics.Uint64 // what it was told as Applier

	// The flush's own, and the next one's after it.
	at   position[E] // of durable
	last uint64      // the Seq of the last entry before that, or 0
}

const (
	knowsSeal uint32 = 1 << iota
	knowsAbort
)

// has reports whether the store knows all of t.
func (f *flusher[E]) has(t target) bool {
	return t.below <= f.durable.Load() && (t.known == 0 || t.known&^f.known.Load() == 0) && (t.applied == 0 || t.applied <= f.applied.Load())
}

// recorded follows a Record of n entries from seq on: it waits until they are
// durable or ctx has ended, or sees to it that they will be.
func (f *flusher[E]) recorded(ctx context.Context, seq, n uint64) error {
	if f.async {
		f.request()
		return nil
	}
	return f.until(ctx, target{below: seq + n})
}

// maxAppend bounds how many entries a call of Append has, but for batches,
// which it never splits.
func maxAppend() int { return atomics.Limit(4096, 1) }

// flushNext tells the store the first of what is new, and asks for another flush if
// that is not all.
func (f *flusher[E]) flushNext(r *flush) error {
	c := f.of
	m := c.cut()
	r.target = c.due(m)
	if f.durable.Load() < m.n {
		next, entries := f.at.collect(m.n, maxAppend())
		if len(entries) > 0 {
			if err := f.call(r, "Append", func(ctx context.Context) error { return f.store.Append(ctx, c.id, entries) }); err != nil {
				return err
			}
			f.last = entries[len(entries)-1].Seq
		}
		f.at = next
		f.durable.Store(next.i)
		if !f.has(r.target) {
			r.again.Store(true) // one call in a flush: who waits for these entries waits for no more
		}
		return nil
	}
	switch due := r.known &^ f.known.Load(); {
	case due&knowsSeal != 0:
		manifest := Manifest{Len: m.live, Last: f.last}
		if err := f.call(r, "Seal", func(ctx context.Context) error { return f.store.Seal(ctx, c.id, manifest) }); err != nil {
			return err
		}
		f.known.Or(knowsSeal)
	case r.target.applied > f.applied.Load():
		next, applier := r.target.applied, f.store.(Applier)
		if err := f.call(r, "Applied", func(ctx context.Context) error { return applier.Applied(ctx, c.id, next) }); err != nil {
			return err
		}
		f.applied.Store(next)
	case due&knowsAbort != 0:
		if err := f.call(r, "Abort", func(ctx context.Context) error { return f.store.Abort(ctx, c.id, c.applyState.Load().reason) }); err != nil {
			return err
		}
		f.known.Or(knowsAbort)
	}
	if !f.has(r.target) {
		r.again.Store(true)
	}
	return nil
}

// due returns what a store should know when the changeset is cut at m.
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
