package cowchangeset

import "iter"

// Trail is what a tracker had recorded at one moment. It never changes, may be
// copied, and may be used from many goroutines. The zero Trail is empty.
type Trail[E any] struct {
	first *Changeset[E]
	last  *Changeset[E]
	mark  *mark[E] // of the last changeset
}

// Trail returns everything recorded so far, as one consistent cut through all
// changesets: it contains each entry whose Record returned before, and none
// without those before it. It copies nothing.
//
// Trail is lock-free. It takes effect when the latest changeset's reserved
// slots are counted.
func (t *Tracker[E]) Trail() Trail[E] {
	for {
		c := t.current.Load()
		if c == nil {
			if c = t.latest(); c == nil {
				return Trail[E]{} // LP(Trail): none yet
			}
		}
		m := c.log.cut() // LP(Trail): if the log was open then, c was the latest
		if !m.final {
			return Trail[E]{t.first.Load(), c, m}
		}
		n := c.next.Load()
		if n == nil {
			return Trail[E]{t.first.Load(), c, m} // LP(Trail): if the latest is sealed
		}
		t.help(c, n) // a Start took effect
	}
}

// Len returns the number of entries. It takes time in proportion to the number
// of changesets.
func (t Trail[E]) Len() int {
	n := 0
	for c := t.last; c != nil; c = c.prev {
		n += t.cut(c).live
	}
	return n
}

// All yields the entries in order, each with its receipt.
func (t Trail[E]) All() iter.Seq2[Receipt, E] {
	return func(yield func(Receipt, E) bool) {
		if t.last == nil {
			return
		}
		for c := t.first; ; c = c.next.Load() {
			for seq, e := range c.log.entries(t.cut(c)) {
				if !yield(c.receipt(seq), e) {
					return
				}
			}
			if c == t.last {
				return
			}
		}
	}
}

// cut returns the mark of one of the trail's changesets. All but the last were
// sealed when the trail was taken, so that their final marks are as old.
func (t Trail[E]) cut(c *Changeset[E]) *mark[E] {
	if c == t.last {
		return t.mark
	}
	return c.log.cut()
}
