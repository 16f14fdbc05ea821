package changeset

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/values"
)

// A load reads the trail once, up to its end, and keeps the encoded entries if they are few.
// If they are not, it keeps what the other records say, reads on without the bodies, and
// reads the entries of one changeset after the other in a second read, as they are yielded.

// mostKept is how many bytes of encoded entries a load keeps.
const mostKept = 8 << 20

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

// lost returns why messages that a load wants are not there: the ErrFenced of a claim, if a
// later writer has pruned them.
func (t *trail) lost(ctx context.Context, err error) error {
	if !errors.Is(err, ErrPruned) || !t.claimed.Load() || t.lock(ctx) != nil {
		return err
	}
	defer t.unlock()
	if fenced := t.ask(ctx, t.held); errors.Is(fenced, ErrFenced) {
		return fenced
	}
	return err
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

// errLong ends a read of more than is kept.
var errLong = errors.New("changeset: too much to keep")

// replay returns what the stream says up to a message: up to the last one, if upTo is 0.
// The state keeps the appends if keep is set and they are few. It begins anew if a writer
// prunes what it reads.
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
		case err == errLong:
			at.skip()
			continue
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
	return s.read(ctx, at.seq, upTo, at.long, func(m *message) error {
		if m.seq > upTo {
			return errGone
		}
		at.begin = cmp.Or(at.begin, m.seq)
		if m.Op == opStart && at.line > 0 && m.Line > at.line+1 {
			return errPurged
		}
		if _, err := at.apply(m); err != nil {
			return err
		}
		if m.seq == upTo {
			return errEnough
		}
		if !at.long && at.read > mostKept {
			return errLong
		}
		return nil
	})
}

// skip makes a state keep no appends, and want none.
func (s *state) skip() {
	s.keep, s.long = false, true
	for _, c := range s.sets {
		c.appends = nil
	}
}

// yieldAll yields the changesets of a state, whose appends it forgets, or reads. It returns
// errEnough, or why it cannot read them.
func yieldAll[E any](ctx context.Context, s *stream, v values.Values[E], at *state, yield func(cowchangeset.Saved[E], error) bool) error {
	if !at.keep {
		return readAll(ctx, s, v, at, yield)
	}
	for i, c := range at.sets {
		at.sets[i] = nil
		if err := yieldOne(v, c, c.appends, yield); err != nil {
			return err
		}
	}
	return errEnough
}

// yieldOne yields a changeset. It returns errEnough if that is the last that is yielded.
func yieldOne[E any](v values.Values[E], c *changeset, appends []*event, yield func(cowchangeset.Saved[E], error) bool) error {
	saved := cowchangeset.Saved[E]{Header: c.Header, Sealed: c.sealed, Aborted: c.aborted, Reason: c.reason, Applied: c.applied}
	var err error
	for _, e := range appends {
		if saved.Entries, err = decodeAll(v, e, saved.Entries); err != nil {
			saved.Entries = nil
			break
		}
	}
	if !yield(saved, err) || err != nil {
		return errEnough
	}
	return nil
}

// readAll reads the trail again, up to the end of a state, and yields each changeset of
// that as soon as all its entries and those of the changesets before it have come.
func readAll[E any](ctx context.Context, s *stream, v values.Values[E], end *state, yield func(cowchangeset.Saved[E], error) bool) error {
	if len(end.sets) == 0 {
		return errEnough
	}
	at, next, before := newState(true), 0, uint64(0)
	if end.sets[0].Ordinal > 1 {
		before = end.sets[0].start - 1
	}
	return s.read(ctx, before, end.seq, false, func(m *message) error {
		if m.seq > end.seq || m.Op == opStart && at.line > 0 && m.Line > at.line+1 || at.line == 0 && m.Op != opWish && (before > 0 && m.seq != before+1 || before == 0 && m.Line != 1) {
			return fmt.Errorf("%w: changeset %q, before it was loaded", ErrPruned, end.sets[next].ID)
		}
		if _, err := at.apply(m); err != nil {
			return err
		}
		for {
			c := end.sets[next]
			if has := at.at(c.Ordinal); has == nil || has.entries < c.entries {
				break
			} else if err := yieldOne(v, c, has.appends, yield); err != nil {
				return err
			} else {
				has.appends = nil
			}
			if next++; next == len(end.sets) {
				return errEnough
			}
		}
		if m.seq == end.seq {
			return corrupt(m, "the entries of changeset %q have not come again", end.sets[next].ID)
		}
		return nil
	})
}
