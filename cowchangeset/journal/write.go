package journal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// breakDown makes err the error of all calls from now on.
func (g *log) breakDown(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == nil {
		g.broken = err
	}
	return g.broken
}

// An outcome is the change that a group makes.
type outcome struct {
	lines  []*chain.Line
	size   int64        // of the last segment
	hash   chain.Digest // of the last line
	synced bool
}

// settle makes an outcome part of the log. The caller is the writer.
func (g *log) settle(out outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := &g.segments[len(g.segments)-1]
	for _, l := range out.lines {
		g.state.Apply(l) // LP(Start, Append, Seal, Abort, Applied, Prune)
		if l.Op == chain.OpAppend {
			g.stats.Entries += l.Count
		}
	}
	if n := len(out.lines); n > 0 {
		g.lines += n
		g.stats.Lines += uint64(n)
		g.stats.Bytes += uint64(out.size - last.Size)
		g.stats.Writes++
		last.Size = out.size
		g.hash = out.hash
		g.dirty = true
	}
	if out.synced {
		g.dirty = false // LP(Sync)
		g.stats.Syncs++
	}
}

// write writes a group and sets the error of each call: it fails for all lines or
// for none. The caller is the writer.
func (g *log) write(group []*call) {
	asked := only(group, func(c *call) bool { return c.rotate })
	last := g.active()
	least := max(cmp.Or(g.options.SegmentSize, defaultSegmentSize), last.Header-smallHeader)
	full := last.Size-last.Header >= least                         // or checkpoints of many would take more room than the lines
	rotates := (full || len(asked) > 0) && last.Size > last.Header // it has more than its header
	if rotates {
		if err := g.rotate(); err != nil {
			g.failed(err)
			if errors.Is(err, ErrBroken) {
				fail(group, err)
				return
			}
			fail(asked, err) // the others go on in the last segment
			rotates = false
		}
	}
	pruning := only(group, func(c *call) bool { return c.line != nil && c.line.Op == chain.OpPrune })
	out, buf, concerned := g.plan(group)
	err := g.put(buf, out.synced)
	if err != nil && !errors.Is(err, ErrBroken) && len(pruning) > 0 && g.spend() {
		g.failed(err)
		fail(only(concerned, func(c *call) bool { return !slices.Contains(pruning, c) }), err)
		out, buf, concerned = g.plan(pruning) // alone: to free the disk that may be full
		err = g.put(buf, out.synced)
	}
	if err != nil {
		g.failed(err)
		if errors.Is(err, ErrBroken) {
			concerned = group // lines that were known already may not be there any more
		}
		for _, c := range concerned {
			c.err = err
		}
		return
	}
	g.settle(out)
	if rotates || len(pruning) > 0 {
		if err := g.drop(); err != nil {
			g.failed(err)
			fail(pruning, err)
		}
		if len(pruning) > 0 {
			g.reserve() // if it was spent; or a later Prune has none
		}
	}
}

// smallHeader is how many bytes of a header may be more than what follows it.
const smallHeader = 4 << 10

// only returns the calls that are as wanted.
func only(group []*call, wanted func(*call) bool) (calls []*call) {
	for _, c := range group {
		if wanted(c) {
			calls = append(calls, c)
		}
	}
	return calls
}

// plan checks the calls of a group one by one, each against the state that those before
// it leave. It returns the outcome, the bytes to be written, and the calls that depend
// on them.
func (g *log) plan(group []*call) (out outcome, buf []byte, concerned []*call) {
	draft, sync, size := g.state.Draft(), false, g.active().Size
	out.hash, buf = g.hash, g.buf[:0]
	for _, c := range group {
		if c.line == nil {
			sync = sync || c.sync && g.dirty
			concerned = append(concerned, c)
			continue
		}
		if c.line.Op == chain.OpPrune {
			c.line.Before = draft.UpTo(c.line.Before)
		}
		known, why := draft.Check(c.line)
		switch {
		case why != "":
			c.err = fmt.Errorf("%w: %s of changeset %q: %s", ErrConflict, c.line.Op, c.line.ID, why)
		case !known:
			out.lines = append(out.lines, c.line)
			c.line.At = uint64(size) + uint64(len(buf))
			buf, out.hash = c.line.Encode(buf, g.lines+len(out.lines), out.hash)
			c.line.End = uint64(size) + uint64(len(buf))
			draft.Apply(c.line)
		}
		if len(out.lines) > 0 {
			concerned = append(concerned, c) // a line of this group is its own, or may say it already, or be why it fails
		}
	}
	if cap(buf) <= maxGroup {
		g.buf = buf
	}
	out.size = size + int64(len(buf))
	out.synced = sync || len(buf) > 0 && g.options.Sync == SyncAlways
	return out, buf, concerned
}

// active returns the segment that is written.
func (g *log) active() *chain.Segment { return &g.segments[len(g.segments)-1] }

// put writes to the end of the last segment, and syncs it if told so.
//
// It writes where the file ends, and not where it should end: so if somebody has
// cut it or written to it, its size shows it afterwards.
func (g *log) put(buf []byte, sync bool) error {
	size := g.active().Size
	if len(buf) > 0 {
		if err := folder.Write(g.file, buf); err != nil {
			err = fmt.Errorf("journal: %w", err)
			if e := g.takeBack(size); e != nil {
				return g.breakDown(fmt.Errorf("%w: %w, and so has removing what it left: %w", ErrBroken, err, e))
			}
			if e := g.check(size); e != nil { // calls of the group that were known already are acknowledged
				return e
			}
			return err
		}
		size += int64(len(buf))
	}
	if sync {
		if err := g.file.Sync(); err != nil {
			// The kernel may forget what it could not write: another fsync would
			// succeed, and mean nothing.
			return g.breakDown(fmt.Errorf("%w: fsync: %w", ErrBroken, err))
		}
	}
	return g.check(size)
}

// takeBack removes what a failed write has left. Until the next fsync, a crash of the machine
// may bring it back: so with SyncAlways that follows at once, and otherwise at the latest
// before another segment begins.
func (g *log) takeBack(size int64) error {
	if err := g.file.Truncate(size); err != nil {
		return err
	}
	g.mu.Lock()
	g.dirty = true
	g.mu.Unlock()
	if g.options.Sync != SyncAlways {
		return nil
	}
	if err := g.file.Sync(); err != nil {
		return err
	}
	g.settle(outcome{synced: true})
	return nil
}

// check returns an error, after which there will be no other answer, if the last
// segment is not the file that was opened, or has another size than the journal
// has given it.
func (g *log) check(size int64) error {
	if err := g.folder.Check(g.name, g.file, size); err != nil {
		return g.breakDown(fmt.Errorf("%w: somebody else has changed its files: %w", ErrBroken, err))
	}
	return nil
}
