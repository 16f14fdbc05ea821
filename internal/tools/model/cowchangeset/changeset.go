// Package model has the sequential models of a Tracker and of a Slice, and a Store for tests. See internal/tools/model.
package model

// Tracker is cowchangeset.Tracker for one goroutine.
type Tracker struct {
	Sets   []*Changeset // all that ever were
	Pruned int          // how many of them are forgotten

	PruneUnapplied bool // Prune forgets what nobody has applied or aborted
}

// Changeset is one of a Tracker's. The entry with index i has Seq i, since
// nobody cuts while a Record is under way.
type Changeset struct {
	ID      string
	Ordinal int
	Entries []int
	Sealed  bool
	Fate    Fate
	Done    int // how many entries are applied; AllDone if the changeset is
}

// AllDone is what Changeset.Done is when nothing is left to do.
const AllDone = -1

// Fate is what becomes of a changeset.
type Fate string

// The fates; the zero Fate is that of a changeset of which nothing was decided.
const (
	Applying Fate = "is being applied"
	Applied  Fate = "has been applied"
	Aborted  Fate = "has been aborted"
)

// Latest returns the latest changeset, or nil.
func (t *Tracker) Latest() *Changeset {
	if len(t.Sets) == 0 {
		return nil
	}
	return t.Sets[len(t.Sets)-1]
}

// Start begins a changeset and seals the one before it.
func (t *Tracker) Start(id string) *Changeset {
	if c := t.Latest(); c != nil {
		c.Seal()
	}
	c := &Changeset{ID: id, Ordinal: len(t.Sets) + 1}
	t.Sets = append(t.Sets, c)
	return c
}

// StartAfter is Start if the latest changeset has an ordinal, 0 if there is none,
// and otherwise returns nil.
func (t *Tracker) StartAfter(ordinal int, id string) *Changeset {
	if ordinal != len(t.Sets) {
		return nil
	}
	return t.Start(id)
}

// Active returns the changeset that a Record goes to, or nil.
func (t *Tracker) Active() *Changeset {
	if c := t.Latest(); c != nil && !c.Sealed {
		return c
	}
	return nil
}

// Record adds entries and returns the index of the first, or false.
func (c *Changeset) Record(es ...int) (seq int, ok bool) {
	if c == nil || c.Sealed {
		return 0, false
	}
	c.Entries = append(c.Entries, es...)
	return len(c.Entries) - len(es), true
}

// Seal returns what there is when nothing more can come.
func (c *Changeset) Seal() []int {
	c.Sealed = true
	return c.Entries
}

// Trail returns the entries of changesets that have any, by ordinal.
func (t *Tracker) Trail() map[int][]int {
	trail := map[int][]int{}
	for _, c := range t.Left() {
		if len(c.Entries) > 0 {
			trail[c.Ordinal] = c.Entries
		}
	}
	return trail
}

// IDs returns the IDs in order.
func (t *Tracker) IDs() (ids []string) {
	for _, c := range t.Left() {
		ids = append(ids, c.ID)
	}
	return ids
}

// Left returns the changesets that are not forgotten.
func (t *Tracker) Left() []*Changeset { return t.Sets[t.Pruned:] }

// Prune forgets all but the last ones of those that there were when it began, the first
// n, up to one that is neither applied nor aborted. It returns how many.
func (t *Tracker) Prune(keep, n int) int {
	was := t.Pruned
	for n-t.Pruned > keep {
		if f := t.Sets[t.Pruned].Fate; !t.PruneUnapplied && f != Applied && f != Aborted {
			break
		}
		t.Pruned++
	}
	return t.Pruned - was
}

// Apply seals c, and lets the caller apply it if that is nobody's yet. Otherwise
// it returns why not.
func (c *Changeset) Apply() (refused Fate) {
	c.Seal()
	if c.Fate != "" {
		return c.Fate
	}
	c.Fate = Applying
	return ""
}

// Applied ends what Apply has begun.
func (c *Changeset) Applied(ok bool) {
	c.Fate = ""
	if ok {
		c.Fate, c.Done = Applied, AllDone
	}
}

// Abort seals c, and aborts it, or returns why not.
func (c *Changeset) Abort() (refused Fate) {
	c.Seal()
	if c.Fate == "" || c.Fate == Aborted {
		c.Fate = Aborted
		return ""
	}
	return c.Fate
}
