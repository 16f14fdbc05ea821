package journal

import (
	"fmt"
	"io"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/folder"
)

// A log is the segments and their writer. A call that finds no writer writes one group
// itself, its own line and those of all that wait by then, with one fsync. If others
// have come meanwhile, a goroutine goes on for as long as calls come. So the slower the
// disk, the larger the groups, and no call waits for a caller that has its turn and
// does not run.
type log struct {
	// mu guards the following fields. Nothing else is done under it: no I/O, no user
	// code.
	mu      atomics.Mutex
	open    bool
	claimed bool           // by a tracker
	used    bool           // calls have come since the claim
	broken  error          // once it is set, all calls return it
	queue   []*call        // calls that wait for their turn
	writing bool           // there is a writer
	closer  *atomics.Event // fired by the last writer if Close waits for it
	loading int            // how many read segments, which are not to be dropped meanwhile

	compressing atomics.Mutex // held by Compress

	// The writer writes these under mu, and may read them without.
	state    *chain.State
	segments []chain.Segment // the last one is written
	lines    int
	hash     chain.Digest // of the last line
	dirty    bool         // something was written, or removed, since the last fsync
	stats    Stats        // the counts, since Open

	// These are the writer's own.
	file    folder.File // the last segment
	name    string      // of that
	buf     []byte
	removed bool // a segment, and the directory is not synced since

	// These never change after Open.
	path     string
	folder   folder.Gzip
	archive  string // where pruned segments go; empty: nowhere
	options  Options
	unlock   io.Closer // lets others open the journal
	torn     int64
	identity string
}

// usable returns why nothing can be done any more. The caller holds mu.
func (g *log) usable() error {
	if !g.open {
		return ErrClosed
	}
	return g.broken
}

// close ends the log, after the group that is being written.
func (g *log) close() error {
	g.mu.Lock()
	if !g.open {
		g.mu.Unlock()
		return ErrClosed
	}
	g.open = false // LP(Close)
	if g.writing {
		last := atomics.MakeEvent()
		g.closer = &last
		g.mu.Unlock()
		last.Wait()
		g.mu.Lock()
	}
	err, dirty := g.broken, g.dirty
	g.mu.Unlock()
	g.compressing.Lock() // which a Compress gives up soon
	defer g.compressing.Unlock()

	if err == nil && dirty {
		if e := g.file.Sync(); e != nil {
			err = fmt.Errorf("journal: fsync: %w", e)
		} else {
			err = g.check(g.active().Size)
		}
	}
	for _, c := range []io.Closer{g.file, g.unlock} {
		if e := c.Close(); err == nil && e != nil {
			err = fmt.Errorf("journal: %w", e)
		}
	}
	return err
}
