package cowchangeset

import (
	"context"
	"fmt"
)

// Prune forgets the oldest changesets, so that no more than keep remain, and returns how many it
// has forgotten. It stops at the first one that is neither applied nor aborted, unless
// Config.PruneUnapplied is set, or that the Store does not have completely. Ordinals do not change.
// A changeset's memory is freed when nobody holds the changeset, an earlier one, or a Trail that
// leads to it. Prune panics if keep is less than 1.
//
// A Store that is a Pruner is told soon afterwards; if that fails, the next Prune or Flush tries
// again, and only Flush returns the error.
//
// Prune is lock-free. It takes effect when the tracker's first changeset is replaced or,
// if nothing is to be forgotten, when the latest one, or none, is found.
func (t *Tracker[E]) Prune(keep int) int {
	if keep < 1 {
		panic(fmt.Sprintf("cowchangeset: Tracker.Prune called with %d, must keep at least 1", keep))
	}
	for {
		first := t.first.Load()
		if first == nil {
			return 0
		}
		last := t.latest()
		c := first
		for last.ordinal-c.ordinal >= uint64(keep) && (t.pruneUnapplied || !c.pending()) && c.stored() {
			c = c.next.Load()
		}
		if t.storage != nil {
			t.retry() // or every Prune would stop here
		}
		if c == first {
			t.requestPrune() // if that has failed before
			return 0
		}
		if t.first.CompareAndSwap(first, c) { // LP(Prune)
			for p := first; p != c; {
				p = p.next.Load()
				p.prev.Store(nil)
			}
			t.requestPrune()
			return int(c.ordinal - first.ordinal)
		}
		// Another Prune was faster.
	}
}

// stored reports whether the store, if there is one, needs nothing more of c,
// which is sealed.
func (c *Changeset[E]) stored() bool { return c.flusher == nil || c.flusher.has(c.due(c.log.cut())) }

// forgotten returns what a store that is a Pruner should know: the ordinal of the first
// changeset.
func (t *Tracker[E]) forgotten() target {
	if first := t.first.Load(); first != nil {
		return target{below: first.ordinal}
	}
	return target{}
}

// requestPrune requests a flush if a store that is a Pruner does not know all that the
// tracker has forgotten.
func (t *Tracker[E]) requestPrune() {
	if t.storage != nil && t.storage.pruner != nil && !t.storage.pruner.has(t.forgotten()) {
		t.storage.pruner.request()
	}
}

// flushPrune is flushNext of a flusher without a changeset.
func (f *flusher[E]) flushPrune(running *flush) error {
	running.target = f.tracker.forgotten()
	if f.has(running.target) {
		return nil
	}
	before, pruner := running.target.below, f.store.(Pruner)
	if err := f.call(running, "Prune", func(ctx context.Context) error { return pruner.Prune(ctx, before) }); err != nil {
		return err
	}
	f.durable.Store(before)
	return nil
}
