package journal

import (
	"context"
	"fmt"
	"iter"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
)

// Load yields the changesets that the journal has, and that were not pruned, when the
// loop begins, in the order of their ordinals: those that are neither applied nor aborted
// with their entries, and of all others what LoadEntries needs. If segments were lost, it
// may begin behind changesets of which nothing is known; see package repair. If it fails, it
// yields the error and ends: a *DecodeError for a value that cannot be decoded, a
// *CorruptError for a file that is damaged, or the cause of ctx. It reads each
// changeset by itself, from its start to its last entry: of those that were open at the same
// time, it reads some lines more than once. Calls of other methods go on meanwhile, also from
// within the loop. Load panics if ctx is nil.
//
// Load is blocking: it waits for the files. It takes effect when the loop begins.
func (j *Journal[E]) Load(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	needContext(ctx, "Load")
	return chain.Loop(func(yield func(cowchangeset.Saved[E]) bool) error {
		return read(ctx, &j.log, func(s *chain.State) []*chain.Changeset { return s.Kept() }, func(c chain.Changeset) bool { return !c.Finished() }, yield)
	})
}

// LoadEntries yields the entries of a changeset that was not pruned when the loop begins.
// If it fails, it yields the error and ends, as Load does; with ErrNotFound if there is no
// such changeset. Entries that were in a segment that a repair has taken out are left out.
// LoadEntries panics if ctx is nil.
//
// LoadEntries is blocking: it waits for the files. It takes effect when the loop begins.
func (j *Journal[E]) LoadEntries(ctx context.Context, id string) iter.Seq2[cowchangeset.Entry[E], error] {
	needContext(ctx, "LoadEntries")
	return chain.Loop(func(yield func(cowchangeset.Entry[E]) bool) error {
		err := read(ctx, &j.log, func(s *chain.State) []*chain.Changeset {
			if c := s.Find(id); c != nil {
				return []*chain.Changeset{c}
			}
			return nil
		}, func(chain.Changeset) bool { return true }, func(s cowchangeset.Saved[E]) bool {
			for _, e := range s.Entries {
				if !yield(e) {
					return false
				}
			}
			return false
		})
		switch err {
		case nil:
			return fmt.Errorf("%w: %q", chain.ErrNotFound, id)
		case chain.ErrLeft:
			return nil
		}
		return err
	})
}

// read yields changesets of a log, the wanted ones with entries.
func read[E any](ctx context.Context, g *log, which func(*chain.State) []*chain.Changeset, wanted func(chain.Changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	cut, err := g.cut(which)
	if err != nil {
		return err
	}
	defer g.loaded()
	closed := false
	err = chain.Load(ctx, cut, wanted, func(s cowchangeset.Saved[E]) bool {
		if !yield(s) {
			return false
		}
		g.mu.Lock()
		closed = !g.open
		g.mu.Unlock()
		return !closed
	})
	if closed {
		err = ErrClosed // others may change the files now
	}
	return err
}

// cut returns the present contents. Until loaded is called, no segment is dropped.
func (g *log) cut(which func(*chain.State) []*chain.Changeset) (chain.Cut, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return chain.Cut{}, err
	}
	g.loading++
	return chain.CutOf(g.path, g.folder, g.options.Upcast, g.state, which(g.state), g.segments), nil // LP(Load, LoadEntries)
}

func (g *log) loaded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loading--
}
