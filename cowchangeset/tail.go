package cowchangeset

import (
	"context"
	"iter"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Tail yields the entries with a Seq of at least from, in order and with their
// Seq: those that there are, and then each that comes, until the changeset is
// sealed and all have been yielded, or until ctx is done. It does not poll: it
// sleeps while nothing comes. Each loop begins anew.
//
// Tail cuts the changeset whenever something has come, as Entries does; so do not
// follow with many Tails what is recorded in large batches. Finding the first
// entry takes time in proportion to from. With a Store, an entry may be yielded
// before the store has it; see Durable. Tail panics if ctx is nil.
//
// A loop body does not run while Tail sleeps, so that it cannot break out then, and
// neither can the stop function of an iter.Pull: to end a Tail at any time, end ctx.
//
// Tail is blocking: it waits for entries, the seal or ctx. It takes effect for
// each stretch of entries when the reserved slots are counted.
func (c *Changeset[E]) Tail(ctx context.Context, from uint64) iter.Seq2[uint64, E] {
	if ctx == nil {
		panic("cowchangeset: Changeset.Tail called with a nil context")
	}
	return func(yield func(uint64, E) bool) {
		p, more := c.log.start(), true
		for ctx.Err() == nil {
			m := c.cut() // LP(Tail)
			p, more = p.walk(m.n, func(seq uint64, e E) bool { return seq < from || ctx.Err() == nil && yield(seq, e) })
			if !more || m.final || !c.log.await(ctx, m) {
				return
			}
		}
	}
}

// await returns true when there may be more than m, and false if ctx has ended.
//
// No wake-up is lost: the caller shows the event and then looks for entries, and a
// writer publishes its entry and then looks for the event. What wakes the caller
// may be in its cut already.
//
// A slot that is reserved and not published is no news: its writer will look for
// the event. If it were, the caller's cuts could void the same writer for ever.
func (l *log[E]) await(ctx context.Context, m *mark[E]) bool {
	w := l.watch.Load()
	if w != nil && w.Fired() {
		l.watch.CompareAndSwap(w, nil) // who has fired it may be stalled
		w = nil
	}
	if w == nil {
		made := atomics.MakeEvent()
		if w = &made; !l.watch.CompareAndSwap(nil, w) {
			return true // another one has come, or has just been woken
		}
	}
	return l.news(m) || w.WaitContext(ctx) == nil
}

// news reports whether the log was sealed, or has entries, since m.
func (l *log[E]) news(m *mark[E]) bool {
	n := l.reserved.Load()
	if n&sealed != 0 {
		return true
	}
	for c, i := m.chunk, m.n; i < n; {
		for i-c.base >= uint64(len(c.slots)) {
			if c = c.next.Load(); c == nil {
				return false // no writer has come so far
			}
		}
		switch now := c.slots[i-c.base].load(); now.kind() {
		case published:
			return true
		case vacant:
			i++
		default:
			i += now.span()
		}
	}
	return false
}

// wake wakes those who wait for what the caller has done. It fires before it takes
// the event away, so that if it stalls in between, others do the rest.
func (l *log[E]) wake() {
	if w := l.watch.Load(); w != nil {
		fire(w)
		l.watch.CompareAndSwap(w, nil)
	}
}
