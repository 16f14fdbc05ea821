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

// Trail returns everything recorded so far, as one consistent cut through all changesets.
// It copies nothing.
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
		m := c.log.cut() // LP(Trail): in it, or the moment above
		if t.first.Load() == first {
			return Trail[E]{first, c, m}
		}
		// A Prune took effect, or the first Start.
	}
}

// Len returns the number of entries. It looks at each changeset.
func (t Trail[E]) Len() int {
	n := 0
	for c := range t.changesets {
		n += t.cut(c).live
	}
	return n
}

// Fetch reads the entries that Resume has left in the Store, and keeps them in memory
// until Prune forgets their changesets. After it has returned nil, loops over the trail
// need no store. It fails for a changeset that the store has forgotten since, which loops
// leave out. It panics if ctx is nil.
func (t Trail[E]) Fetch(ctx context.Context) error {
	needContext(ctx, "Trail.Fetch")
	for c := range t.changesets {
		if m := t.cut(c); m.unloaded() {
			if _, err := c.fetch(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// All yields the entries in order, each with its receipt. Without Fetch it reads what
// Resume has left in the Store, and panics, as Changeset.Entries does.
func (t Trail[E]) All() iter.Seq2[Receipt, E] {
	return func(yield func(Receipt, E) bool) {
		for c := range t.changesets {
			if !c.loop(context.Background(), t.cut(c), func(seq uint64, e E) bool { return yield(c.receipt(seq), e) }) {
				return
			}
		}
	}
}

// changesets yields those of the trail.
func (t Trail[E]) changesets(yield func(*Changeset[E]) bool) {
	for c := t.first; c != nil && yield(c) && c != t.last; c = c.next.Load() {
	}
}

// cut returns the cut of one of the trail's changesets. If that was sealed when the trail
// was taken, as all but the last were, its final cut is as old.
func (t Trail[E]) cut(c *Changeset[E]) *cut[E] {
	if c == t.last && !t.end.final {
		return t.end
	}
	return c.log.cut()
}

// IDs returns the changesets' IDs in order.
//
// IDs is lock-free. It takes effect when the latest changeset is seen to have no
// successor.
func (t *Tracker[E]) IDs() []string {
	var ids []string
	for c := range t.span().changesets { // LP(IDs)
		ids = append(ids, c.id)
	}
	return ids
}

// All yields the changesets that exist when a loop begins, in order, each with its
// ordinal.
//
// All is lock-free. It takes effect as IDs does, when a loop over it begins.
func (t *Tracker[E]) All() iter.Seq2[uint64, *Changeset[E]] {
	return func(yield func(uint64, *Changeset[E]) bool) {
		for c := range t.span().changesets { // LP(All)
			if !yield(c.ordinal, c) {
				return
			}
		}
	}
}

// ByID returns the first changeset with that ID, and whether there is one. It looks at one
// after the other: for many look-ups keep a map.
//
// ByID is lock-free. It takes effect as IDs does.
func (t *Tracker[E]) ByID(id string) (*Changeset[E], bool) {
	return t.find(func(c *Changeset[E]) bool { return c.id == id }) // LP(ByID)
}

// ByOrdinal returns the changeset with that ordinal, and whether there is one. It looks at
// one after the other.
//
// ByOrdinal is lock-free. It takes effect as IDs does.
func (t *Tracker[E]) ByOrdinal(n uint64) (*Changeset[E], bool) {
	return t.find(func(c *Changeset[E]) bool { return c.ordinal == n }) // LP(ByOrdinal)
}

// Pending yields the changesets that are sealed and neither applied, as far as the Store knows, nor
// aborted, in order: the work of a service after Resume.
//
// Pending is lock-free. It takes effect as IDs does, when a loop over it begins, and for
// each changeset when its state is read.
func (t *Tracker[E]) Pending() iter.Seq[*Changeset[E]] {
	return func(yield func(*Changeset[E]) bool) {
		for c := range t.span().changesets { // LP(Pending): which there are
			if !c.log.open() && c.pending() && !yield(c) { // LP(Pending): each
				return
			}
		}
	}
}

// find returns the first changeset for which wanted returns true.
func (t *Tracker[E]) find(wanted func(*Changeset[E]) bool) (*Changeset[E], bool) {
	for c := range t.span().changesets {
		if wanted(c) {
			return c, true
		}
	}
	return nil, false
}

// span returns the changesets that exist at one moment, as a Trail without a cut.
func (t *Tracker[E]) span() Trail[E] {
	for {
		first := t.first.Load()
		last := t.latest() // LP(span)
		if t.first.Load() == first {
			return Trail[E]{first: first, last: last}
		}
		// A Prune took effect, or the first Start.
	}
}
