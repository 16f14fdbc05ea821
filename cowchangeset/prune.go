package cowchangeset

import "fmt"

// Prune forgets the oldest changesets, so that no more than keep are left of those
// that it finds: a Start that comes meanwhile adds one. It returns how many it has
// forgotten. They are no longer among IDs and in Trails that are taken from now on;
// ordinals do not change. The memory of a changeset returns when nobody holds it,
// or a Trail, Final or changeset from before it.
//
// With a Store, Prune stops at the first changeset that the store has not been
// told to the end, and asks for that to be tried again. It panics if keep is less
// than 1.
//
// Prune is lock-free. It takes effect when the tracker's first changeset is
// replaced or, if nothing is to be forgotten, when the latest one is found.
func (t *Tracker[E]) Prune(keep int) int {
	if keep < 1 {
		panic(fmt.Sprintf("cowchangeset: Tracker.Prune called with %d, must keep at least 1", keep))
	}
	for {
		first := t.first.Load()
		last := t.latest()
		if first == nil || last == nil {
			return 0
		}
		c := first
		for last.ordinal-c.ordinal >= uint64(keep) && c.stored() {
			c = c.next.Load()
		}
		if c.keep != nil && last.ordinal-c.ordinal >= uint64(keep) {
			c.keep.kick() // or it would be stopped here for ever
		}
		if c == first {
			return 0
		}
		if t.first.CompareAndSwap(first, c) { // LP(Prune)
			for p := first; p != c; {
				p = p.next.Load()
				p.prev.Store(nil)
			}
			return int(c.ordinal - first.ordinal)
		}
		// Another Prune was faster.
	}
}

// stored reports whether the store, if there is one, needs nothing more of c,
// which is sealed.
func (c *Changeset[E]) stored() bool { return c.keep == nil || c.keep.has(c.due(c.cut())) }
