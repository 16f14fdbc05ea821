package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
)

// Compress makes a gzip file of each segment but the last: 0000000001.journal.gz, which is
// read in place, as before, by Open, readers, Verify and Repair, and by zcat. Lines take
// about a fifth of the room then; reading the entries of a changeset inflates its segment
// from the beginning. A segment is removed when its compressed file was read back and is on
// the disk, so that a crash, or a context that ends, leaves one or the other. No segment is
// dropped meanwhile: the next Prune or rotation does that. Compress panics if ctx is nil.
//
// Call it now and then, in a goroutine of its own: it takes a second or two for 32 MiB,
// and calls of other methods go on.
//
// Compress is blocking: it waits for the disk, and for another Compress. It takes effect
// for each segment when that is removed.
func (j *Journal[E]) Compress(ctx context.Context) error {
	needContext(ctx, "Compress")
	g := &j.log
	g.compressing.Lock()
	defer g.compressing.Unlock()
	g.mu.Lock()
	err := g.usable()
	if err != nil {
		g.mu.Unlock()
		return err
	}
	g.loading++
	segments := slices.DeleteFunc(slices.Clone(g.segments[:len(g.segments)-1]), func(s chain.Segment) bool {
		return s.Number < g.state.Needed() // the writer may be about to remove it
	})
	g.mu.Unlock()
	defer g.loaded()
	stop := func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.usable()
	}
	for _, s := range segments {
		if err := stop(); err != nil {
			return err
		}
		if err := g.folder.Compress(s.Name(), stop); err != nil { // LP(Compress)
			if stop() == nil {
				g.failed(err)
			}
			return fmt.Errorf("journal: compressing segment %d: %w", s.Number, err)
		}
	}
	return nil
}
