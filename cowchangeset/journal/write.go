package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A log is the segments and who writes them. A call that finds nobody writing
// writes itself, and all that wait by then, at once, with one fsync. If others have
// come meanwhile, a goroutine goes on with them, for as long as calls come: so the
// slower the disk, the larger the groups, and nobody waits for a caller that has
// its turn and does not run.
type log struct {
	// mu guards what follows. Nothing else is done under it: no I/O, no user
	// code.
	mu      atomics.Mutex
	open    bool
	claimed bool           // by a tracker
	broken  error          // what all calls return, once it is set
	queue   []*call        // who waits
	writing bool           // there is a writer
	closer  *atomics.Event // fired by the last writer if Close waits for it
	loading int            // how many read segments, which are not to be dropped meanwhile

	// The writer writes these under mu, and may read them without.
	state    *state
	segments []segment // the last one is written
	lines    int
	hash     digest // of the last line
	dirty    bool   // something was written since the last fsync

	// These are the writer's own.
	file file   // the last segment
	name string // of that
	buf  []byte

	// These never change after Open.
	path     string
	folder   folder
	options  Options
	unlock   io.Closer // lets others open the journal
	torn     int64
	identity string
}

// A call is one that waits for its turn to write.
type call struct {
	line   *line // nil: fsync only
	rotate bool  // begin another segment
	err    error // by the writer, before done

	done atomics.Event // fired when the call has succeeded or failed
}

// maxGroup bounds how many bytes are written at once for several calls: it is
// how much memory the journal keeps for its buffer.
const maxGroup = 1 << 20

// usable returns why nothing can be done any more. The caller holds mu.
func (g *log) usable() error {
	if !g.open {
		return ErrClosed
	}
	return g.broken
}

// do has a call written, and returns when that has succeeded or failed, or with
// the cause of ctx if that ends before its turn.
func (g *log) do(ctx context.Context, c *call) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.done = atomics.MakeEvent()
	g.mu.Lock()
	if err := g.usable(); err != nil {
		g.mu.Unlock()
		return err
	}
	g.queue = append(g.queue, c)
	first := !g.writing
	g.writing = true
	g.mu.Unlock()
	if first {
		g.lead()
		return c.err
	}
	left := false
	defer func() {
		if !left && !c.done.Fired() && !g.withdraw(c) { // ctx, which is not ours, panics
			c.done.Wait()
		}
	}()
	if c.done.WaitContext(ctx) != nil && g.withdraw(c) {
		left = true
		return context.Cause(ctx)
	}
	c.done.Wait()
	return c.err
}

// withdraw takes a call out of the queue and reports true, unless the writer has
// taken it.
func (g *log) withdraw(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.queue {
		if other == c {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			return true
		}
	}
	return false
}

// lead writes one group, which has the caller's call. The caller is the writer.
func (g *log) lead() {
	more := true
	defer func() {
		if more { // also if the file has ended this goroutine
			atomics.Go(g.serve)
		}
	}()
	more = g.turn()
}

// serve is the writer from now on, until no call is left.
func (g *log) serve() {
	more := true
	defer func() {
		if more {
			atomics.Go(g.serve)
		}
	}()
	for more = g.turn(); more; more = g.turn() {
		runtime.Gosched() // those who have just returned may call again: they fit into the next group
	}
}

// turn writes one group, if any call waits, and reports whether others do. If not,
// the caller is the writer no more.
func (g *log) turn() (more bool) {
	g.mu.Lock()
	err := g.usable()
	group := g.take()
	g.mu.Unlock()
	if err == nil {
		g.write(group)
	} else {
		fail(group, err)
	}
	for _, c := range group {
		c.done.Fire()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		return true
	}
	g.queue, g.writing = nil, false
	if g.closer != nil {
		g.closer.Fire()
	}
	return false
}

// take removes calls from the head of the queue that are to be written at once.
// The caller holds mu.
func (g *log) take() []*call {
	bytes, n := 0, 0
	for _, c := range g.queue {
		if l := c.line; l != nil {
			bytes += len(l.entries) + len(l.id) + len(l.previous) + len(l.reason)
		}
		if n > 0 && bytes > maxGroup {
			break
		}
		n++
	}
	group := g.queue[:n:n]
	g.queue = g.queue[n:]
	return group
}

// fail makes err what becomes of calls that have no other error.
func fail(calls []*call, err error) {
	for _, c := range calls {
		if c.err == nil {
			c.err = err
		}
	}
}

// write writes a group: all of its lines or none. If the journal is found to be
// in disorder, it is broken.
func (g *log) write(group []*call) {
	finished := false
	defer func() {
		if finished {
			return
		}
		// A bug of ours, or of the file. What is written nobody knows; and the
		// writer goes on, to tell all who come.
		err := g.breakDown(fmt.Errorf("%w: panic: %v", ErrBroken, recover()))
		for _, c := range group {
			c.err = err
		}
	}()
	g.writeGroup(group)
	finished = true
}

// breakDown makes err what all calls get from now on.
func (g *log) breakDown(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == nil {
		g.broken = err
	}
	return g.broken
}

// An outcome is what a group changes.
type outcome struct {
	lines  []*line
	size   int64  // of the last segment
	hash   digest // of the last line
	synced bool
}

// settle makes an outcome part of the log. The caller is the writer.
func (g *log) settle(out outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := &g.segments[len(g.segments)-1]
	for _, l := range out.lines {
		last.last = max(last.last, g.state.apply(l)) // LP(Start, Append, Seal, Abort, Applied, Prune)
	}
	if n := len(out.lines); n > 0 {
		g.lines += n
		last.size = out.size
		g.hash = out.hash
		g.dirty = true
	}
	if out.synced {
		g.dirty = false // LP(Sync)
	}
}

// writeGroup sets the error of each call.
func (g *log) writeGroup(group []*call) {
	full := g.active().size >= g.options.segmentSize()
	for _, c := range group {
		full = full || c.rotate
	}
	if full && !g.active().fresh() {
		if err := g.rotate(); err != nil {
			fail(group, err)
			return
		}
	}
	draft, buf, sync := g.state.draft(), g.buf[:0], false
	out := outcome{hash: g.hash}
	var concerned []*call // all that a failure is about
	for _, c := range group {
		if c.line == nil {
			sync = sync || g.dirty
			concerned = append(concerned, c)
			continue
		}
		if c.line.op == opPrune {
			c.line.before = draft.upTo(c.line.before, g.options.PruneUnapplied)
		}
		known, why := draft.check(c.line)
		switch {
		case why != "":
			c.err = fmt.Errorf("%w: %s of changeset %q: %s", ErrConflict, c.line.op, c.line.id, why)
		case known && len(out.lines) == 0:
		case known:
			concerned = append(concerned, c) // a line of this group may be what says it
		default:
			draft.apply(c.line)
			out.lines = append(out.lines, c.line)
			buf, out.hash = c.line.encode(buf, g.lines+len(out.lines), out.hash)
			concerned = append(concerned, c)
		}
	}
	if cap(buf) <= maxGroup {
		g.buf = buf
	}
	out.size = g.active().size + int64(len(buf))
	out.synced = sync || len(buf) > 0 && g.options.Sync == SyncAlways
	if err := g.put(buf, out.synced); err != nil {
		if errors.Is(err, ErrBroken) {
			concerned = group // what was found to be known already may not be there any more
		}
		fail(concerned, err)
		return
	}
	g.settle(out)
	if err := g.drop(); err != nil {
		for _, c := range group {
			if c.line != nil && c.line.op == opPrune {
				fail([]*call{c}, err)
			}
		}
	}
}

// active returns the segment that is written.
func (g *log) active() *segment { return &g.segments[len(g.segments)-1] }

// put writes to the end of the last segment, and syncs it if told so.
//
// It writes where the file ends, and not where it should end: so if somebody has
// cut it or written to it, its size shows it afterwards.
func (g *log) put(buf []byte, sync bool) error {
	size := g.active().size
	if len(buf) > 0 {
		if err := writeAll(g.file, buf); err != nil {
			err = fmt.Errorf("journal: %w", err)
			if e := g.file.Truncate(size); e != nil {
				return g.breakDown(fmt.Errorf("%w: %w, and so has removing what it left: %w", ErrBroken, err, e))
			}
			return err
		}
		size += int64(len(buf))
	}
	if sync {
		if err := g.file.Sync(); err != nil {
			// What the kernel could not write it may forget: another fsync
			// would succeed, and mean nothing.
			return g.breakDown(fmt.Errorf("%w: fsync: %w", ErrBroken, err))
		}
	}
	return g.check(size)
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

// writeAll writes all or fails.
func writeAll(f io.Writer, text []byte) error {
	n, err := f.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	return err
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

	if err == nil && dirty {
		if e := g.file.Sync(); e != nil {
			err = fmt.Errorf("journal: fsync: %w", e)
		} else {
			err = g.check(g.active().size)
		}
	}
	for _, c := range []io.Closer{g.file, g.unlock} {
		if e := c.Close(); err == nil && e != nil {
			err = fmt.Errorf("journal: %w", e)
		}
	}
	return err
}
