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
// entry takes time in proportion to from. Tail panics if ctx is nil.
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
			p, more = p.walk(m.n, func(seq uint64, e E) bool { return seq < from || yield(seq, e) })
			if !more || m.final || !c.log.await(ctx, m) {
				return
			}
		}
	}
}

// await returns true when there may be more than m, and false if ctx has ended.
//
// No wake-up is lost: the caller publishes the event and then looks at reserved,
// and a writer changes reserved and then looks for the event, when it has
// published. What wakes the caller may be in its cut already.
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
	if l.reserved.Load() != m.n {
		return true
	}
	return w.WaitContext(ctx) == nil
}

// wake wakes those who wait for what the caller has done. It fires before it takes
// the event away, so that if it stalls in between, others do the rest.
func (l *log[E]) wake() {
	if w := l.watch.Load(); w != nil {
		fire(w)
		l.watch.CompareAndSwap(w, nil)
	}
}
