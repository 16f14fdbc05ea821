package cowchangeset

import (
	"context"

	"github.com/latchfree/latchfree/internal/atomics"
)

// With a store, one Start at a time tells it of the changeset, and then announces
// that: so the store learns of changesets in the order of their ordinals, and of
// none that is not to be, unless its answer was an error. The turn is an event
// that its owner fires when the store has returned, which may be after the caller
// of Start has left.

// startStored makes n the latest changeset, if that is prev or if only is false.
func (t *Tracker[E]) startStored(ctx context.Context, n *Changeset[E], only bool, prev *Changeset[E]) error {
	turn, err := t.take(ctx)
	if err != nil {
		return &StoreError{ChangesetID: n.id, Method: "wait", Err: err}
	}
	c := t.latest()
	if only && c != prev {
		t.pass(turn)
		return ErrConflict // LP(StartAfter): conflict, in latest
	}
	n.follow(c)
	if err := t.tell(ctx, turn, n); err != nil {
		return err
	}
	t.announce(c, n) // LP(Start): nobody else announces
	t.succeed(c, n)
	t.pass(turn)
	if c != nil {
		c.keep.kick() // the store may as well know at once that it is sealed
	}
	return nil
}

// take waits for the caller's turn to call Store.Start.
func (s *storage[E]) take(ctx context.Context) (*atomics.Event, error) {
	mine := atomics.MakeEvent()
	if s.turn.CompareAndSwap(nil, &mine) {
		return &mine, nil
	}
	if s.timeout > 0 {
		bounded, cancel := atomics.WithCancelCause(ctx)
		defer cancel(nil)
		defer atomics.After(s.timeout, func() { cancel(errStoreHangs) })()
		ctx = bounded
	}
	for !s.turn.CompareAndSwap(nil, &mine) {
		if w := s.turn.Load(); w != nil {
			if w.WaitContext(ctx) != nil {
				return nil, context.Cause(ctx)
			}
		}
	}
	return &mine, nil
}

// pass ends the turn.
func (s *storage[E]) pass(turn *atomics.Event) {
	s.turn.Store(nil)
	turn.Fire()
}

// tell calls Store.Start for n. The turn is the caller's if it returns nil.
// Otherwise it is passed on when the store has returned, which may be later.
func (t *Tracker[E]) tell(ctx context.Context, turn *atomics.Event, n *Changeset[E]) error {
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
				t.pass(turn)
			case settled.Swap(true):
				t.pass(turn)
			default:
				r.end(nil, false)
			}
		}()
		err = k.call(r, "Start", func(ctx context.Context) error { return t.store.Start(ctx, h) })
	})
	waited := false
	defer func() {
		if !waited && settled.Swap(true) { // ctx panics, or has called runtime.Goexit
			t.pass(turn)
		}
	}()
	err := r.done.WaitContext(ctx)
	waited = true
	if err != nil {
		err = k.failed("wait", context.Cause(ctx))
	} else {
		err = r.outcome.Load().err
	}
	if err != nil && settled.Swap(true) {
		return nil // it has succeeded in time after all
	}
	return err
}
