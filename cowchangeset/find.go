package cowchangeset

import "iter"

// IDs returns the changesets' IDs in order: the changeset with ordinal n is at index
// n-1, or at a lower one after Prune.
//
// IDs is lock-free. It takes effect when the latest changeset is seen to have no
// successor.
func (t *Tracker[E]) IDs() []string {
	all := t.span() // LP(IDs)
	if all.last == nil {
		return nil
	}
	ids := make([]string, 0, all.last.ordinal-all.first.ordinal+1)
	for c := range all.changesets {
		ids = append(ids, c.id)
	}
	return ids
}

// All yields the changesets in order, each with its ordinal. A loop takes those that
// exist when it begins, also if Prune forgets some of them meanwhile.
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

// ByID returns the changeset with that ID, the first one if there are several, and
// whether there is one that Prune has not forgotten. It looks at one changeset after
// the other: for many look-ups keep a map.
//
// ByID is lock-free. It takes effect as IDs does.
func (t *Tracker[E]) ByID(id string) (*Changeset[E], bool) {
	return t.find(func(c *Changeset[E]) bool { return c.id == id }) // LP(ByID)
}

// ByOrdinal returns the changeset with that ordinal, and whether there is one that
// Prune has not forgotten. It takes a step for each changeset before it.
//
// ByOrdinal is lock-free. It takes effect as IDs does.
func (t *Tracker[E]) ByOrdinal(n uint64) (*Changeset[E], bool) {
	return t.find(func(c *Changeset[E]) bool { return c.ordinal == n }) // LP(ByOrdinal)
}

// Pending yields the changesets that are sealed and neither applied nor aborted, in
// order: those that a service goes on with after Resume. A loop takes the changesets
// that exist when it begins, and yields those of which this is so when it comes to
// them. A yielded changeset may be applied meanwhile. With Config.PruneUnapplied, those
// that Prune has forgotten are not among them.
//
// Pending is lock-free. It takes effect as IDs does, when a loop over it begins, and
// for each changeset when that is seen not to be applied or aborted.
func (t *Tracker[E]) Pending() iter.Seq[*Changeset[E]] {
	return func(yield func(*Changeset[E]) bool) {
		for c := range t.span().changesets { // LP(Pending): which there are
			if !c.log.open() && !c.applyState.Load().finished() && !yield(c) { // LP(Pending): each
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
