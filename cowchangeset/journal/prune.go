package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// Prune forgets changesets with an ordinal below before, from the oldest on, as far as
// they are sealed. Prune may forget none. The latest changeset stays. A tracker's Prune
// calls it when it has forgotten the same changesets. Load does not yield forgotten
// changesets any more. Segments about nothing else are removed, or moved to
// Options.Archive: at once or, while a Load or Compress runs, at a later Prune, rotation or
// Open. Prune panics if ctx is nil.
//
// Seal, Abort and Applied of a pruned changeset succeed and do nothing, so that a
// caller that missed their success can repeat them. So do not give its ID to another
// changeset while a caller may still do that.
//
// On a full disk, Prune has room for its line: a journal keeps 64 KiB for that.
//
// Prune is blocking: it waits for its turn, as long as ctx lasts, and then for the
// disk. It takes effect when its line is written and, with SyncAlways, synced; the
// segments are removed after that. An error of the removal does not undo the prune.
func (j *Journal[E]) Prune(ctx context.Context, before uint64) error {
	return j.tell(ctx, "Prune", &chain.Line{Op: chain.OpPrune, Before: before}) // LP(Prune): in log.settle
}

// drop removes the segments at the beginning that are about pruned changesets only. The
// caller is the writer.
//
// They go one by one, the oldest first, and each is gone for good before the next one
// goes: whatever a crash leaves, no segment is missing between others.
func (g *log) drop() error {
	for {
		if g.removed {
			if err := g.folder.Sync(); err != nil {
				return fmt.Errorf("journal: dropping a segment: fsync of the directory: %w", err)
			}
			g.removed = false
		}
		g.mu.Lock()
		oldest := g.segments[0]
		idle := len(g.segments) > 1 && oldest.Number < g.state.Needed() && g.loading == 0
		g.mu.Unlock()
		if !idle {
			return nil
		}
		if err := g.syncLast(); err != nil { // or the line that says that it was pruned might be lost, and the segment too
			return err
		}
		err := g.putAway(oldest.Name())
		if errors.Is(err, fs.ErrNotExist) {
			if gone, _ := g.gone(oldest); gone {
				err = nil // by somebody else's hand
			}
		}
		if err != nil {
			return fmt.Errorf("journal: dropping segment %d: %w", oldest.Number, err)
		}
		g.mu.Lock()
		g.segments = g.segments[1:]
		g.mu.Unlock()
		g.removed = true
	}
}

// gone reports whether there is no such segment.
func (g *log) gone(s chain.Segment) (bool, error) {
	f, err := g.folder.Open(s.Name())
	switch {
	case err == nil:
		return false, f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	}
	return false, err
}

// putAway removes a segment, or moves it as Options.Archive says.
func (g *log) putAway(name string) error {
	if g.archive == "" {
		return g.folder.Remove(name)
	}
	return g.folder.Move(name, g.archive)
}

// reserved is how much room is kept for the line of a prune: enough also where a disk
// gives room in large blocks.
const reserved = 64 << 10

// reserve keeps some room of the disk, if there is none kept.
func (g *log) reserve() {
	if f, err := g.folder.Open(chain.ReserveName); err == nil {
		size, err := f.Size()
		if f.Close(); err == nil && size == reserved {
			return
		}
	}
	g.folder.Remove(chain.ReserveName) // a part is none
	f, err := g.folder.Create(chain.ReserveName, "")
	if err != nil {
		return
	}
	text := make([]byte, reserved)
	rand.Read(text) // which no file system makes smaller
	err = folder.Write(f, text)
	if e := f.Close(); err != nil || e != nil {
		g.folder.Remove(chain.ReserveName)
	}
}

// spend gives the room back, and reports whether there was any.
func (g *log) spend() bool {
	return g.folder.Remove(chain.ReserveName) == nil && g.folder.Sync() == nil
}
