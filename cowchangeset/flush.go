package cowchangeset

import (
	"context"
	"errors"
)

// Flush returns when the Store has all entries that were recorded before, and
// knows of all changesets that were sealed and, if it is a Pruner, forgotten; or with a StoreError, after which
// there may be others. Without a Store it does nothing. It panics if ctx is nil.
//
// Flush is blocking: it waits for the Store or until ctx ends. It takes effect for
// each changeset when its reserved slots are counted.
func (t *Tracker[E]) Flush(ctx context.Context) error {
	if ctx == nil {
		panic("cowchangeset: Tracker.Flush called with a nil context")
	}
	if t.storage == nil || t.first.Load() == nil {
		return nil
	}
	var failed error
	for c := t.first.Load(); c != nil; c = c.next.Load() {
		if err := c.flusher.until(ctx, c.due(c.cut())); err != nil { // LP(Flush)
			failed = errors.Join(failed, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	if p := t.pruning; p != nil && ctx.Err() == nil {
		failed = errors.Join(failed, p.until(ctx, p.due()))
	}
	return failed
}

// Durable returns how much of the changeset the Store has: every entry with a Seq
// below it. It is zero without a Store.
//
// Durable is wait-free. It takes effect when the number is read.
func (c *Changeset[E]) Durable() uint64 {
	if c.flusher == nil {
		return 0
	}
	return c.flusher.durable.Load() // LP(Durable)
}
