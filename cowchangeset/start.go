package cowchangeset

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// With a store, one Start at a time tells it of the changeset, and then announces
// that: so the store learns of changesets in the order of their ordinals, and of
// none that is not to be, unless its answer was an error. A turn ends when the store
// has returned, which may be after the caller of Start has left.

// startStored makes n the latest changeset, if that is prev or if only is false.
func (t *Tracker[E]) startStored(ctx context.Context, n *Changeset[E], only bool, prev *Changeset[E]) error {
	mine, err := t.take(ctx)
	if err != nil {
		return &StoreError{ChangesetID: n.id, Method: "wait", Err: err}
	}
	c := t.latest()
	if only && c != prev {
		mine.over.Fire()
		return ErrConflict // LP(StartAfter): conflict, in latest
	}
	n.follow(c)
	if err := t.tell(ctx, mine, n); err != nil {
		return err
	}
	t.announce(c, n) // LP(Start): nobody else announces
	t.succeed(c, n)
	mine.over.Fire()
	if c != nil {
		c.keep.kick() // the store may as well know at once that it is sealed
	}
	return nil
}

// turn is a place in the line of those who want to call Store.Start.
type turn struct {
	over  atomics.Event // fired by the owner, or by the store's goroutine if that is left behind
	ahead *turn         // who is to be waited for instead, if the owner left before it was its turn; set before over is fired
}

// take waits for the caller's turn to call Store.Start. Who comes first has it
// first. Who leaves the line makes the next one wait for those ahead.
func (s *storage[E]) take(ctx context.Context) (*turn, error) {
	mine := &turn{over: atomics.MakeEvent()}
	ahead := s.line.Swap(mine)
	for ahead != nil && ahead.over.Fired() {
		ahead = ahead.ahead
	}
	if ahead == nil {
		return mine, nil
	}
	defer func() {
		if ahead != nil { // the context has ended, or panics, or has called runtime.Goexit
			mine.ahead = ahead
			mine.over.Fire()
		}
	}()
	if s.timeout > 0 {
		bounded, cancel := atomics.WithTimeoutCause(ctx, s.timeout, errStoreHangs)
		defer cancel()
		ctx = bounded
	}
	for ahead != nil {
		if ahead.over.WaitContext(ctx) != nil {
			return nil, context.Cause(ctx)
		}
		ahead = ahead.ahead
	}
	return mine, nil
}

// tell calls Store.Start for n. The turn is the caller's if it returns nil.
// Otherwise it is passed on when the store has returned, which may be later.
func (t *Tracker[E]) tell(ctx context.Context, mine *turn, n *Changeset[E]) error {
	k, r := n.keep, &round{done: atomics.MakeEvent()}
	h := Header{ID: n.id, Ordinal: n.ordinal}
	if p := n.prev.Load(); p != nil {
		h.Previous = p.id
	}
	// settled is set by the store's success and by the caller that leaves. Who
	// comes second knows of the other.
	var settled atomics.Bool
	atomics.Go(func() {
		err := errStoreExited
		defer func() {
			err = k.explain(r.method, err, recover())
			switch {
			case err != nil:
				r.end(err, false)
				mine.over.Fire()
			case settled.Swap(true):
				mine.over.Fire()
			default:
				r.end(nil, false)
			}
		}()
		err = k.call(r, "Start", func(ctx context.Context) error { return t.store.Start(ctx, h) })
	})
	asked := false
	defer func() {
		if !asked && settled.Swap(true) { // ctx panics, or has called runtime.Goexit
			mine.over.Fire()
		}
	}()
	err := r.done.WaitContext(ctx)
	if err != nil {
		err = k.failed("wait", context.Cause(ctx))
	} else {
		err = r.outcome.Load().err
	}
	asked = true
	if err != nil && settled.Swap(true) {
		return nil // it has succeeded in time after all
	}
	return err
}
