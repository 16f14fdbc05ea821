package changeset

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/values"
)

// load returns what the trail has. With a claim, it leaves the state for the writes.
func (t *trail) load(ctx context.Context) (*state, error) {
	if !t.claimed.Load() {
		return t.replay(ctx, 0, true)
	}
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	at, err := t.replayOwn(ctx, true) // LP(Load), with a claim: everything acknowledged is up to its own last message
	if err == nil && t.claimed.Load() && t.state == nil {
		t.state = at.lean()
	}
	return at, err
}

// lean returns a copy that shares nothing that changes, without appends.
func (s *state) lean() *state {
	l := *s
	l.keep, l.ids, l.sets = false, make(map[string]*changeset, len(s.ids)), make([]*changeset, len(s.sets))
	for i, c := range s.sets {
		without := *c
		without.appends = nil
		l.sets[i] = &without
		l.ids[c.ID] = &without
	}
	return &l
}

// errPurged ends a read of messages of which some are gone, perhaps because they are purged
// meanwhile.
var errPurged = errors.New("changeset: messages are purged")

// errGone ends a read whose last message is gone.
var errGone = fmt.Errorf("%w: its last message is gone", ErrCorrupt)

// replay returns what the stream says up to a message: up to the last one, if upTo is 0.
// The state keeps the appends if keep is set. It begins again if a writer prunes what it reads.
func (s *stream) replay(ctx context.Context, upTo uint64, keep bool) (*state, error) {
	at := newState(keep)
	known := upTo > 0
	for began := uint64(0); ; {
		if !known {
			var info ends
			if err := s.ask(ctx, func(ctx context.Context) (err error) {
				info, err = s.last(ctx)
				return err
			}); err != nil {
				return nil, err
			}
			if info.existing == at.seq {
				return at, at.whole()
			}
			upTo = info.existing
		}
		switch err := s.replayTo(ctx, at, upTo); {
		case err == errPurged && at.begin == began: // a purge would have begun with that
			return nil, fmt.Errorf("%w: messages behind %d are gone", ErrCorrupt, at.seq)
		case err == errPurged || err == errGone && !known:
			began, at = at.begin, newState(keep)
			continue
		case err == errGone:
			return nil, fmt.Errorf("%w: message %d", err, upTo)
		case err != errEnough:
			return nil, err
		}
		if err := at.whole(); err == nil || known {
			return at, err
		}
	}
}

// replayTo changes the state by the messages up to one.
func (s *stream) replayTo(ctx context.Context, at *state, upTo uint64) error {
	return s.read(ctx, at.seq, upTo, func(m *message) error {
		if m.seq > upTo {
			return errGone
		}
		at.begin = cmp.Or(at.begin, m.seq)
		if m.Kind == Started && at.line > 0 && m.Line > at.line+1 {
			return errPurged
		}
		if _, err := at.apply(m); err != nil {
			return err
		}
		if m.seq == upTo {
			return errEnough
		}
		return nil
	})
}

// yieldAll yields the changesets of a state, whose appends it forgets.
func yieldAll[E any](v values.Values[E], at *state, yield func(cowchangeset.Saved[E], error) bool) {
	for i, c := range at.sets {
		at.sets[i] = nil
		saved := cowchangeset.Saved[E]{Header: c.Header, Sealed: c.sealed, Aborted: c.aborted, Reason: c.reason, Applied: c.applied}
		var err error
		for _, e := range c.appends {
			if saved.Entries, err = decodeAll(v, e, saved.Entries); err != nil {
				saved.Entries = nil
				break
			}
		}
		if !yield(saved, err) || err != nil {
			return
		}
	}
}
