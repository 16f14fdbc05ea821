package cowchangeset

import (
	"context"
	"iter"
)

// Follow yields the entries with a Seq of at least from, in order: those that are there, and then
// each new one, until the changeset is sealed or ctx is done. It sleeps while nothing is recorded:
// only ctx ends it then.
//
// Follow may yield an entry before the Store has it. It cuts the changeset whenever something was
// recorded: do not follow large batches with many loops. It reads what Resume has left in the
// Store, and panics, as Entries does. Follow panics if ctx is nil.
//
// Follow is blocking: it waits for entries, the seal or ctx. It takes effect for each
// stretch of entries when the reserved slots are counted.
func (c *Changeset[E]) Follow(ctx context.Context, from uint64) iter.Seq2[uint64, E] {
	needContext(ctx, "Changeset.Follow")
	return func(yield func(uint64, E) bool) {
		fresh := func(seq uint64, e E) bool { return seq < from || ctx.Err() == nil && yield(seq, e) }
		for p := c.log.start(); ctx.Err() == nil; {
			m := c.log.cut() // LP(Follow)
			if m.unloaded() {
				c.loop(ctx, m, fresh)
				return
			}
			next, more := p.walk(m.n, fresh)
			if !more || m.final {
				return
			}
			p = next
			e := c.log.watch.Event() // the entry or seal that fires it may be in m already
			if !c.log.grown(m) && e.WaitContext(ctx) != nil {
				return
			}
		}
	}
}

// Follow yields the entries from a place on, in order and each with its receipt, also
// those of later changesets, until ctx is done; see Changeset.Follow. It begins with
// from.Seq in the changeset with from.Ordinal: to go on behind a receipt, add 1 to its
// Seq. The zero Receipt, or any place that Prune has forgotten, means the first changeset.
//
// Follow is blocking: it waits for entries, Starts or ctx. It takes effect for each
// stretch of entries when the reserved slots are counted.
func (t *Tracker[E]) Follow(ctx context.Context, from Receipt) iter.Seq2[Receipt, E] {
	needContext(ctx, "Tracker.Follow")
	return func(yield func(Receipt, E) bool) {
		var c *Changeset[E] // whose entries have all been yielded, or are not wanted
		for ctx.Err() == nil {
			n := t.next(c)
			if n == nil {
				e := t.starts.Event()
				if t.link(c).Load() == nil && e.WaitContext(ctx) != nil {
					return
				}
				continue
			}
			c = n
			if c.ordinal < from.Ordinal {
				continue
			}
			seq := uint64(0)
			if c.ordinal == from.Ordinal {
				seq = from.Seq
			}
			for i, e := range c.Follow(ctx, seq) { // LP(Follow)
				if !yield(c.receipt(i), e) {
					return
				}
			}
		}
	}
}

// grown reports whether the log was sealed, or has entries, since m.
//
// A slot that is reserved and not published does not count: its writer will wake the
// waiters. If it did, the cuts of waiters could void the same writer for ever.
func (l *log[E]) grown(m *cut[E]) bool {
	n := l.reserved.Load()
	if n&sealed != 0 {
		return true
	}
	for c, i := m.chunk, m.n; i < n; {
		for i-c.base >= uint64(len(c.slots)) {
			next := c.next.Load()
			if next == nil || next == c {
				return false // no writer has come so far; or the log has ended, which wakes
			}
			c = next
		}
		switch state := c.slots[i-c.base].state.Load(); state & kindMask {
		case published:
			return true
		case vacant:
			i++
		default:
			i += state >> spanShift
		}
	}
	return false
}
