package cowchangeset

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// With a store, one Start at a time tells it of the changeset, and then announces that.
// So the store learns of changesets in the order of their ordinals. It learns of no
// changeset that does not come into being, unless its answer is an error or too late.
//
// All of this runs on a goroutine of the Start's own, which does not use the caller's
// context: that is the caller's code, and may stall, while others wait for their
// tickets. The caller only waits for the outcome.

// starting is a Start with a store.
type starting[E any] struct {
	flush // how it has ended, or that the store takes too long

	n           *Changeset[E] // to be started
	conditional bool          // only if expected is the latest
	expected    *Changeset[E]

	// settled is set by the store's success and by a caller that leaves. The second of
	// them sees the first: the changeset comes into being if the store was first. Then
	// before is the changeset that it follows.
	settled atomics.Bool
	before  *Changeset[E]
}

// startStored makes n the latest changeset, if that is expected or conditional is false.
func (t *Tracker[E]) startStored(ctx context.Context, n *Changeset[E], conditional bool, expected *Changeset[E]) (started *Changeset[E], err error) {
	s := &starting[E]{flush: flush{done: atomics.MakeEvent()}, n: n, conditional: conditional, expected: expected}
	inLine, leave := atomics.WithCancel(context.Background())
	atomics.Go(func() { t.startNext(inLine, s) })
	err = errStoreExited // and remains so if ctx panics or calls runtime.Goexit
	defer func() {
		if err == nil {
			return
		}
		leave()
		if s.settled.Swap(true) { // it has succeeded in time after all
			t.appear(s)
			started, err = n, nil
		}
	}()
	if s.done.WaitContext(ctx) != nil {
		return nil, n.flusher.failed("wait", context.Cause(ctx))
	}
	if err := s.outcome.Load().err; err != nil {
		return nil, err
	}
	return n, nil
}

// startNext waits for its ticket, tells the store, and makes the changeset the latest
// one, unless the caller has left by then. It releases the ticket when the store has
// returned, even if that takes too long.
func (t *Tracker[E]) startNext(inLine context.Context, s *starting[E]) {
	f := s.n.flusher
	mine, err := t.wait(inLine)
	if err != nil {
		s.end(f.failed("wait", err), false)
		return
	}
	f.finish(&s.flush, func() error { return t.startInStore(s) }, func(err error) {
		if err == nil && !s.settled.Swap(true) {
			t.appear(s)
			if s.before != nil {
				s.before.flusher.request() // so that the store knows at once that it is sealed
			}
		}
		mine.released.Fire()
		s.end(err, false)
	})
}

// startInStore calls Store.Start, unless the changeset is not to come into being.
func (t *Tracker[E]) startInStore(s *starting[E]) error {
	s.before = t.latest()
	switch {
	case s.settled.Load():
		return nil // the caller has left
	case s.conditional && s.before != s.expected:
		return ErrConflict // LP(StartAfter): conflict, in latest
	}
	s.n.comeAfter(s.before)
	h := Header{ID: s.n.id, Ordinal: s.n.ordinal}
	if s.before != nil {
		h.Previous = s.before.id
	}
	return s.n.flusher.call(&s.flush, "Start", func(ctx context.Context) error { return t.store.Start(ctx, h) })
}

// appear makes the changeset of s the latest one, as anybody does that knows that it is
// settled. S still has its ticket, so that nobody else announces.
func (t *Tracker[E]) appear(s *starting[E]) {
	t.link(s.before).CompareAndSwap(nil, s.n) // LP(Start): if the latest is nil or sealed
	t.succeed(s.before, s.n)
}

// ticket is a place in the queue of Starts that want to call Store.Start.
type ticket struct {
	released atomics.Event // fired by the owner
	ahead    *ticket       // the ticket to wait for instead, if the owner left the queue; set before released is fired
}

// wait waits for the caller's turn to call Store.Start and returns its ticket: first
// come, first served. A caller that leaves the queue, because ctx has ended, makes the
// next one wait for those ahead. Ctx is not a user's.
func (c *calls) wait(ctx context.Context) (*ticket, error) {
	mine := &ticket{released: atomics.MakeEvent()}
	ahead := c.lastTicket.Swap(mine)
	for ahead != nil && ahead.released.Fired() {
		ahead = ahead.ahead
	}
	if ahead == nil {
		return mine, nil
	}
	if c.timeout > 0 {
		bounded, cancel := atomics.WithTimeoutCause(ctx, c.timeout, ErrStoreTimeout)
		defer cancel()
		ctx = bounded
	}
	for ahead != nil {
		if ahead.released.WaitContext(ctx) != nil {
			mine.ahead = ahead
			mine.released.Fire()
			return nil, context.Cause(ctx)
		}
		ahead = ahead.ahead
	}
	return mine, nil
}
