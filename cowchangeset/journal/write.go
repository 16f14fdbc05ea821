package journal

import (
	"context"
	"fmt"
	"io"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A log is the file and who writes it: one call at a time, the leader. It
// writes its own line and those of all calls that wait, at once, with one fsync.
// Then it makes the first that has come since the next leader. So nobody serves
// others for longer than one write, and no goroutine does nothing but write.
type log struct {
	// mu guards what follows. Nothing else is done under it: no I/O, no user
	// code.
	mu      atomics.Mutex
	open    bool
	broken  error          // what all calls return, once it is set
	queue   []*call        // who waits; the first is the leader, or will be
	writing bool           // there is a leader
	closer  *atomics.Event // fired by the last leader if Close waits for it

	// The leader writes these under mu, and may read them without.
	state *state
	lines int
	hash  string // of the last line
	size  int64  // of the lines: what comes after is garbage of a failed write
	dirty bool   // something was written since the last fsync

	// These never change after Open.
	file   file
	policy SyncPolicy
	torn   int64

	buf []byte // the leader's own
}

// A call is one that waits for its turn to write.
type call struct {
	line *line // nil: fsync only
	err  error // by the leader, before ready

	// stage is guarded by mu: waiting → leading, or waiting → taken.
	stage stage
	ready atomics.Event // fired when the call leads, or is done
}

// A stage says who decides what becomes of a call.
type stage uint8

const (
	waiting stage = iota // it may leave
	leading              // it may leave if it makes another one the leader
	taken                // the leader has it
)

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
	c.ready = atomics.MakeEvent()
	g.mu.Lock()
	if err := g.usable(); err != nil {
		g.mu.Unlock()
		return err
	}
	g.queue = append(g.queue, c)
	if !g.writing {
		g.writing = true
		c.stage = leading
		c.ready.Fire()
	}
	g.mu.Unlock()

	if !g.turn(ctx, c) {
		return context.Cause(ctx)
	}
	if c.stage == leading { // since ready, nobody else changes it
		g.lead()
	}
	return c.err
}

// turn waits until the call leads or is done. It reports false if the call was
// withdrawn because ctx has ended first.
func (g *log) turn(ctx context.Context, c *call) (came bool) {
	defer func() { // also if ctx, which is not ours, panics
		if !came {
			came = !g.withdraw(c)
		}
	}()
	came = c.ready.WaitContext(ctx) == nil && (c.stage == taken || ctx.Err() == nil)
	return came
}

// withdraw takes a call out of the queue and reports true. If the leader has it
// already, it waits until it is done and reports false.
func (g *log) withdraw(c *call) bool {
	g.mu.Lock()
	if c.stage == taken {
		g.mu.Unlock()
		c.ready.Wait()
		return false
	}
	for i, other := range g.queue {
		if other == c {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			break
		}
	}
	if c.stage == leading {
		g.appoint()
	}
	g.mu.Unlock()
	return true
}

// appoint makes the first who waits the leader, also of a log that is closed,
// where it finds that out. The caller is the leader and holds mu.
func (g *log) appoint() {
	if len(g.queue) > 0 {
		g.queue[0].stage = leading
		g.queue[0].ready.Fire()
		return
	}
	g.queue = nil
	g.writing = false
	if g.closer != nil {
		g.closer.Fire()
	}
}

// lead writes the calls at the head of the queue. The first of them is the
// caller's.
func (g *log) lead() {
	g.mu.Lock()
	err := g.usable()
	group := g.take()
	g.mu.Unlock()

	var out outcome
	if err == nil {
		out = g.write(group)
	}

	g.mu.Lock()
	g.settle(out)
	for i, c := range group {
		if err != nil {
			c.err = err
		}
		if i > 0 {
			c.ready.Fire()
		}
	}
	g.appoint()
	g.mu.Unlock()
}

// take removes calls from the head of the queue that may be written at once: of
// each changeset one, and one start, so that each of them can be judged by the
// state as it is. A tracker makes no others. The caller holds mu.
func (g *log) take() []*call {
	seen := map[string]bool{}
	bytes, n := 0, 0
	for _, c := range g.queue {
		if l := c.line; l != nil {
			bytes += len(l.entries) + len(l.id) + len(l.previous) + len(l.reason)
			if n > 0 && bytes > maxGroup || seen[l.id] || l.op == opStart && seen[""] {
				break
			}
			seen[l.id] = true
			if l.op == opStart {
				seen[""] = true // which is no ID
			}
		}
		n++
	}
	group := g.queue[:n:n]
	g.queue = g.queue[n:]
	for _, c := range group[1:] {
		c.stage = taken
	}
	return group
}

// An outcome is what the leader has done to the file.
type outcome struct {
	lines  []*line // written
	bytes  int64
	hash   string // of the last one
	synced bool
	broken error
}

// settle makes an outcome part of the log. The caller is the leader and holds
// mu.
func (g *log) settle(out outcome) {
	for _, l := range out.lines {
		g.state.apply(l) // LP(Start, Append, Seal, Abort, Applied)
	}
	if n := len(out.lines); n > 0 {
		g.lines += n
		g.size += out.bytes
		g.hash = out.hash
		g.dirty = true
	}
	if out.synced {
		g.dirty = false // LP(Sync)
	}
	if out.broken != nil {
		g.broken = out.broken
	}
}

// write writes a group and sets the error of each call. It fails for all lines
// or for none.
func (g *log) write(group []*call) (out outcome) {
	buf, sync := g.buf[:0], false
	hash := g.hash
	var writers []*call
	for _, c := range group {
		if c.line == nil {
			writers = append(writers, c)
			sync = sync || g.dirty
			continue
		}
		known, why := g.state.check(c.line)
		switch {
		case why != "":
			c.err = fmt.Errorf("%w: %s of changeset %q: %s", ErrConflict, c.line.op, c.line.id, why)
		case !known:
			out.lines = append(out.lines, c.line)
			buf, hash = c.line.encode(buf, g.lines+len(out.lines), hash)
			writers = append(writers, c)
		}
	}
	if cap(buf) <= maxGroup {
		g.buf = buf
	}
	out.bytes, out.hash = int64(len(buf)), hash
	sync = sync || len(buf) > 0 && g.policy == SyncAlways
	if err := g.put(buf, sync, &out); err != nil {
		for _, c := range writers {
			c.err = err
		}
		out.lines = nil
	}
	return out
}

// put writes to the end of the file, and syncs it if told so.
func (g *log) put(buf []byte, sync bool, out *outcome) error {
	if len(buf) > 0 {
		if err := writeAt(g.file, buf, g.size); err != nil {
			err = fmt.Errorf("journal: %w", err)
			if e := g.file.Truncate(g.size); e != nil {
				out.broken = fmt.Errorf("%w: %w, and so has removing what it left: %w", ErrBroken, err, e)
				err = out.broken
			}
			return err
		}
	}
	if sync {
		if err := g.file.Sync(); err != nil {
			// What the kernel could not write it may forget: another fsync
			// would succeed, and mean nothing.
			out.broken = fmt.Errorf("%w: fsync: %w", ErrBroken, err)
			return out.broken
		}
		out.synced = true
	}
	return nil
}

// writeAt writes all or fails.
func writeAt(f io.WriterAt, text []byte, offset int64) error {
	n, err := f.WriteAt(text, offset)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	return err
}

// close ends the log, after the call that is being written.
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
		}
	}
	if e := g.file.Close(); err == nil && e != nil {
		err = fmt.Errorf("journal: %w", e)
	}
	return err
}
