package cowchangeset

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Prune forgets the oldest changesets, so that no more than keep remain of those that
// it finds: a Start that comes meanwhile adds one. It stops at the first changeset that
// is neither applied nor aborted, unless Config.PruneUnapplied is set. It returns how
// many it has forgotten. IDs, and Trails taken afterwards, do not contain them; ordinals do not
// change. The memory of a changeset is freed when nobody holds the changeset, or a
// Trail or an earlier changeset that leads to it. A Final holds only its own entries.
// Entries that Resume has left in the store may be forgotten there.
//
// With a Store, Prune stops at the first changeset that the store does not know
// completely, and asks for another try. A store that is a Pruner is told soon
// afterwards, on another goroutine. If that fails, the next Prune or Flush makes it try
// again, and only Flush returns the error. Prune panics if keep is less than 1.
//
// Prune is lock-free. It takes effect when the tracker's first changeset is replaced
// or, if nothing is to be forgotten, when the latest one is found.
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
		for last.ordinal-c.ordinal >= uint64(keep) && (t.pruneUnapplied || c.applyState.Load().finished()) && c.stored() {
			c = c.next.Load()
		}
		if c.flusher != nil && last.ordinal-c.ordinal >= uint64(keep) && !c.stored() {
			c.flusher.request() // or every Prune would stop here
		}
		if c == first {
			t.prune() // if that has failed before
			return 0
		}
		if t.first.CompareAndSwap(first, c) { // LP(Prune)
			for p := first; p != c; {
				p = p.next.Load()
				p.prev.Store(nil)
			}
			t.prune()
			return int(c.ordinal - first.ordinal)
		}
		// Another Prune was faster.
	}
}

// stored reports whether the store, if there is one, needs nothing more of c,
// which is sealed.
func (c *Changeset[E]) stored() bool { return c.flusher == nil || c.flusher.has(c.due(c.cut())) }

// pruning tells a store that is a Pruner which changesets its tracker has forgotten, in
// flushes of its own: a store that prunes slowly delays nobody but a Flush.
type pruning[E any] struct {
	flushes
	tracker *Tracker[E]

	// pruned is the ordinal below which the store knows all changesets to be forgotten.
	// Only flushes write it, and only upwards; at first it is that of the first
	// changeset.
	pruned atomics.Uint64
}

// prune requests a flush if a store that is a Pruner does not know all that the tracker
// has forgotten.
func (t *Tracker[E]) prune() {
	if t.storage == nil || t.pruning == nil {
		return
	}
	if p := t.pruning; !p.has(p.due()) {
		p.request()
	}
}

// due returns all that the store should know: the ordinal of the first changeset.
func (p *pruning[E]) due() target {
	if first := p.tracker.first.Load(); first != nil {
		return target{below: first.ordinal}
	}
	return target{}
}

func (p *pruning[E]) has(t target) bool { return t.below <= p.pruned.Load() }

func (p *pruning[E]) flushNext(running *flush) error {
	running.target = p.due()
	if before := running.target.below; !p.has(running.target) {
		pruner := p.tracker.store.(Pruner)
		if err := p.call(running, "Prune", func(ctx context.Context) error { return pruner.Prune(ctx, before) }); err != nil {
			return err
		}
		p.pruned.Store(before)
	}
	return nil
}
