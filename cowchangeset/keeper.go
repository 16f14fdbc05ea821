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

// keeper brings the store up to date with one changeset, in rounds. A round takes a
// cut, and makes one call of the store: of the entries up to there, as far as one
// call takes them, or else of what follows. So whoever waits for an entry shares a
// call with those that came before the cut, and does not wait for the next one.
type keeper[E any] struct {
	rounds
	*storage[E]
	of *Changeset[E]

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

// has reports whether the store knows all of g.
func (k *keeper[E]) has(g goal) bool {
	return g.n <= k.durable.Load() && (g.told == 0 || g.told&^k.told.Load() == 0) && (g.applied == 0 || g.applied <= k.applied.Load())
}

// recorded follows a Record of n entries from seq on: it waits until they are
// durable or ctx has ended, or sees to it that they will be.
func (k *keeper[E]) recorded(ctx context.Context, seq, n uint64) error {
	if k.async {
		k.kick()
		return nil
	}
	return k.until(ctx, goal{n: seq + n})
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
