package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/atomics"
)

// A call is one that waits for its turn to write.
type call struct {
	line   *chain.Line // or nil
	sync   bool        // do not return before an fsync
	rotate bool        // begin another segment
	err    error       // by the writer, before done

	done atomics.Event // fired when the call has succeeded or failed
}

// maxGroup bounds how many bytes are written at once for several calls: it is
// how much memory the journal keeps for its buffer.
const maxGroup = 1 << 20

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
	g.used = g.used || c.line != nil
	first := !g.writing
	g.writing = true
	g.mu.Unlock()
	if first {
		g.serve(true)
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
	i := slices.Index(g.queue, c)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	return i >= 0
}

// serve writes groups until the queue is empty or, if one is true, one group, and leaves
// the others to a goroutine. The caller is the writer.
func (g *log) serve(one bool) {
	more := true
	defer func() {
		if more { // also if the file has ended this goroutine
			atomics.Go(func() { g.serve(false) })
		}
	}()
	for more = g.serveGroup(); more && !one; {
		more = g.serveGroup()
	}
}

// serveGroup writes one group, if any call waits, and reports whether others do. If not,
// the caller is the writer no more.
func (g *log) serveGroup() (more bool) {
	g.mu.Lock()
	err := g.usable()
	group := g.take()
	g.mu.Unlock()
	g.finish(group, err)
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

// finish writes a group, unless there is an error already, and fires the events of its
// calls.
func (g *log) finish(group []*call, err error) {
	written := false
	defer func() {
		if !written {
			// A bug of ours, or of the file. It is not known what was written. Later
			// calls still need a writer, which returns the error to them.
			why := any("runtime.Goexit was called")
			if thrown := recover(); thrown != nil {
				why = thrown
			}
			err := g.breakDown(fmt.Errorf("%w: panic: %v", ErrBroken, why))
			g.failed(err)
			for _, c := range group {
				c.err = err
			}
		}
		for _, c := range group {
			c.done.Fire()
		}
	}()
	if err == nil {
		g.write(group)
	}
	fail(group, err)
	written = true
}

// take removes calls from the head of the queue that are to be written at once.
// The caller holds mu.
func (g *log) take() []*call {
	bytes, n := 0, 0
	for _, c := range g.queue {
		if l := c.line; l != nil {
			bytes += len(l.Entries) + len(l.ID) + len(l.Previous) + len(l.Reason)
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

// fail sets err as the error of the calls that have none.
func fail(calls []*call, err error) {
	for _, c := range calls {
		if c.err == nil {
			c.err = err
		}
	}
}
