package cowchangeset

import (
	"context"
	"iter"
)

// Trail is everything that a tracker had recorded at one moment. It never changes, may
// be copied, and may be used from many goroutines. The zero Trail is empty.
type Trail[E any] struct {
	first *Changeset[E]
	last  *Changeset[E]
	end   *cut[E] // of the last changeset
}

// Trail returns everything recorded so far, as one consistent cut through all
// changesets: it contains each entry whose Record returned before, and with each entry
// all those before it. It copies nothing.
//
// Trail is lock-free. It takes effect when the latest changeset's reserved slots are
// counted or, if it was sealed before that, when it was sealed.
func (t *Tracker[E]) Trail() Trail[E] {
	// Nothing is in a changeset before current has been swung to it. So if c
	// is sealed by the time it is cut, there was a moment, at its seal or at
	// this load, when it was complete and its successor still empty.
	for {
		first := t.first.Load()
		c := t.current.Load()
		if c == nil {
			return Trail[E]{} // LP(Trail): nothing yet
		}
		m := c.cut() // LP(Trail): in it, or the moment above
		if t.first.Load() == first {
			return Trail[E]{first, c, m}
		}
		// A Prune took effect, or the first Start.
	}
}

// Len returns the number of entries. It takes time in proportion to the number of
// changesets and, for those not read since their seal, to the number of their entries
// that no cut has seen.
func (t Trail[E]) Len() int {
	n := 0
	for c := range t.changesets {
		n += t.cut(c).live
	}
	return n
}

// All yields the entries in order, each with its receipt. It reads entries that Resume has
// left in the store from there, and panics as Changeset.Entries does if that fails.
func (t Trail[E]) All() iter.Seq2[Receipt, E] {
	return func(yield func(Receipt, E) bool) {
		if err := t.walk(yield); err != nil {
			panic(err)
		}
	}
}

// walk is All, and returns the error of the store.
func (t Trail[E]) walk(yield func(Receipt, E) bool) error {
	for c := range t.changesets {
		if more, err := c.walk(context.Background(), t.cut(c), func(seq uint64, e E) bool { return yield(c.receipt(seq), e) }); !more {
			return err
		}
	}
	return nil
}

// changesets yields those of the trail.
func (t Trail[E]) changesets(yield func(*Changeset[E]) bool) {
	for c := t.first; c != nil && yield(c) && c != t.last; c = c.next.Load() {
	}
}

// cut returns the cut of one of the trail's changesets. All but the last were
// sealed when the trail was taken, so that their final cuts are as old.
func (t Trail[E]) cut(c *Changeset[E]) *cut[E] {
	if c == t.last {
		return t.end
	}
	return c.cut()
}
