package model

// Tracker is cowchangeset.Tracker for one goroutine.
type Tracker struct{ Sets []*Changeset }

// Changeset is one of a Tracker's. The entry with index i has Seq i, since
// nobody cuts while a Record is under way.
type Changeset struct {
	ID      string
	Ordinal int
	Entries []int
	Sealed  bool
}

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
		c.Sealed = true
	}
	c := &Changeset{ID: id, Ordinal: len(t.Sets) + 1}
	t.Sets = append(t.Sets, c)
	return c
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

// IDs returns the IDs in order.
func (t *Tracker) IDs() (ids []string) {
	for _, c := range t.Sets {
		ids = append(ids, c.ID)
	}
	return ids
}
