package changeset

import (
	"context"
	"errors"
	"sync/atomic"
)

// trail is the part of a Store that does not depend on the type of entries.
type trail struct {
	*stream
	holder string

	// turn is held by the call that writes, and guards the fields below.
	turn    chan struct{}
	claimed atomic.Bool // written by holders of turn
	used    bool        // calls that write have come since the claim
	place   place       // behind the last message that is known
	fenced  error       // an ErrFenced, or nil
	state   *state      // up to place; nil until it is needed
	ids     uint64      // message IDs given away
}

// place is where the next message goes.
type place struct {
	seq   uint64 // the last sequence of the stream
	own   uint64 // the last sequence of the claim's subject
	line  uint64 // of the message before it
	token string // the subject of the claim
}

// lock waits for the turn to write.
func (t *trail) lock(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *trail) unlock() { <-t.turn }

// write makes the record that plan returns durable. Plan looks at the state, and returns
// nil if that has all of the call already, or an error. It is called again when the
// stream turns out to have more.
func (t *trail) write(ctx context.Context, method string, plan func(*state) (*record, []byte, error)) error {
	needContext(ctx, "Store."+method)
	if err := t.lock(ctx); err != nil {
		return failed(method, err)
	}
	defer t.unlock()
	if err := t.ready(ctx); err != nil {
		if err == t.fenced && t.state != nil && t.stored(plan) {
			return nil // it was stored before
		}
		return failed(method, err)
	}
	for {
		r, body, err := plan(t.state)
		if err != nil || r == nil {
			return err
		}
		switch err := t.publishAll(ctx, r, body); {
		case err == nil:
			return nil
		case errors.Is(err, errMoved):
			if err = t.look(ctx); err == nil {
				continue
			}
			if errors.Is(err, ErrFenced) && t.stored(plan) {
				return nil // an earlier attempt was stored before the trail was claimed
			}
			return failed(method, err)
		default:
			return failed(method, err)
		}
	}
}

// stored reports whether the state has all of a call already.
func (t *trail) stored(plan func(*state) (*record, []byte, error)) bool {
	r, _, err := plan(t.state)
	return r == nil && err == nil
}

// ready returns an error if the trail is not to be written, and makes the state.
func (t *trail) ready(ctx context.Context) error {
	if !t.claimed.Load() {
		return ErrUnclaimed
	}
	t.used = true
	switch {
	case t.fenced != nil:
		return t.fenced
	case t.state != nil:
		return nil
	}
	s, err := t.replayOwn(ctx, false)
	if err != nil {
		return err
	}
	t.state = s
	return nil
}

// replayOwn returns what the stream says up to this Store's last message. If that is
// damaged because a later writer has pruned it, the error is its ErrFenced.
func (t *trail) replayOwn(ctx context.Context, keep bool) (*state, error) {
	s, err := t.replay(ctx, t.place.own, keep)
	if !errors.Is(err, ErrCorrupt) {
		return s, err
	}
	if fenced := t.ask(ctx, t.held); errors.Is(fenced, ErrFenced) {
		if t.state == nil { // else calls whose acknowledgements were lost look for their messages first
			t.fenced = fenced
		}
		return nil, fenced
	}
	return nil, err
}
