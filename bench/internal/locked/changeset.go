package locked

import (
	"crypto/rand"
	"iter"
	"slices"
	"sync"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Tracker is cowchangeset.Tracker as a careful engineer would write it with a
// mutex: choosing the changeset and adding the entry are one critical section,
// and so are making a changeset and making it current. Entries are only ever
// appended, so that a cut is a slice header and copies nothing.
type Tracker[E any] struct {
	mu     sync.Mutex
	sets   []*Changeset[E]
	pruned uint64
}

// Changeset is one changeset of a Tracker, whose mutex guards it.
type Changeset[E any] struct {
	tracker *Tracker[E]
	id      string
	ordinal uint64
	sealed  bool
	entries []E
}

// Start begins a new changeset and seals the one before it.
func (t *Tracker[E]) Start() *Changeset[E] {
	c := &Changeset[E]{tracker: t, id: rand.Text()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.sets); n > 0 {
		t.sets[n-1].sealed = true
	}
	t.sets = append(t.sets, c)
	c.ordinal = t.pruned + uint64(len(t.sets))
	return c
}

// Prune forgets the oldest changesets, so that no more than keep remain.
func (t *Tracker[E]) Prune(keep int) {
	t.mu.Lock()
	if n := len(t.sets) - keep; n > 0 {
		t.sets = slices.Clone(t.sets[n:])
		t.pruned += uint64(n)
	}
	t.mu.Unlock()
}

// Record adds e to the latest changeset.
func (t *Tracker[E]) Record(e E) (cowchangeset.Receipt, error) {
	t.mu.Lock()
	if len(t.sets) == 0 {
		t.mu.Unlock()
		return cowchangeset.Receipt{}, cowchangeset.ErrNoActive
	}
	c := t.sets[len(t.sets)-1]
	if c.sealed {
		t.mu.Unlock()
		return cowchangeset.Receipt{}, cowchangeset.ErrNoActive
	}
	seq := len(c.entries)
	c.entries = append(c.entries, e)
	t.mu.Unlock()
	return cowchangeset.Receipt{ChangesetID: c.id, Ordinal: c.ordinal, Seq: uint64(seq)}, nil
}

// RecordBatch adds es to the latest changeset, next to each other.
func (t *Tracker[E]) RecordBatch(es []E) (cowchangeset.Receipt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sets) == 0 || t.sets[len(t.sets)-1].sealed {
		return cowchangeset.Receipt{}, cowchangeset.ErrNoActive
	}
	c := t.sets[len(t.sets)-1]
	seq := len(c.entries)
	c.entries = append(c.entries, es...)
	return cowchangeset.Receipt{ChangesetID: c.id, Ordinal: c.ordinal, Seq: uint64(seq)}, nil
}

// Current returns the latest changeset, or nil.
func (t *Tracker[E]) Current() *Changeset[E] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sets) == 0 {
		return nil
	}
	return t.sets[len(t.sets)-1]
}

// Seal ends the changeset and returns its entries.
func (c *Changeset[E]) Seal() []E {
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	c.sealed = true
	return slices.Clip(c.entries)
}

// Len returns the number of entries.
func (c *Changeset[E]) Len() int {
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	return len(c.entries)
}

// Copy returns a copy of the entries, as a service takes one that lets nobody
// keep a slice of what it guards.
func (c *Changeset[E]) Copy() []E {
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	return slices.Clone(c.entries)
}

// Entries yields the entries that the changeset has when the loop begins.
func (c *Changeset[E]) Entries() iter.Seq2[uint64, E] {
	return func(yield func(uint64, E) bool) {
		c.tracker.mu.Lock()
		entries := c.entries
		c.tracker.mu.Unlock()
		for i, e := range entries {
			if !yield(uint64(i), e) {
				return
			}
		}
	}
}
