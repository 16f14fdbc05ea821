package changeset

import (
	"context"
	"fmt"
	"iter"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Event is the meaning of one record. Fields that do not belong to its Kind are zero. The
// caller owns everything in it.
type Event[E any] struct {
	Position Position
	Kind     Kind

	ChangesetID string
	Ordinal     uint64 // of the changeset
	Previous    string // of Started: the ID of the changeset before it

	Entries  []cowchangeset.Entry[E] // of Appended
	Manifest cowchangeset.Manifest   // of Sealed
	Reason   string                  // of Aborted
	Next     uint64                  // of Applied
	Before   uint64                  // of Pruned: the ordinal of the first changeset that is kept
	Holder   string                  // of Claimed: Options.Holder
}

// Position is a place in a trail: behind one event, before the next one. The zero Position
// is the beginning. It can be kept, as JSON too, and given to Follow by another process.
type Position struct {
	Sequence uint64 `json:"sequence"` // of the event's last message in the stream
	Line     uint64 `json:"line"`     // of that message in the trail
	Token    string `json:"token"`    // of the claim that it belongs to
}

// Follow yields the events behind a position, in the order of the trail, without gaps and
// each once: those that there are, and then each that comes, until ctx ends; then it
// yields the cause. Servers that are away delay it. The zero Position means everything that
// is kept.
//
// It yields ErrPruned if messages behind the position were purged, ErrRewound if the
// stream has other messages than it had, ErrForeign, ErrCorrupt, or a *DecodeError, and
// ends. It panics if ctx is nil.
//
// Events of a changeset that was pruned may still come, with an ordinal below that of the
// first Started. Follow is blocking: it waits for the servers and for events. It takes
// effect for each event when its record is committed.
func (s *Store[E]) Follow(ctx context.Context, after Position) iter.Seq2[Event[E], error] {
	needContext(ctx, "Store.Follow")
	return func(yield func(Event[E], error) bool) {
		at := newState(false)
		at.seq, at.line, at.token = after.Sequence, after.Line, after.Token
		err := s.follow(ctx, at, yield)
		if err != errEnough {
			yield(Event[E]{}, failed("Follow", err))
		}
	}
}

// End returns the position behind the last event that there is, or the zero Position if
// there is none. A loop of Follow that has come to an event with its Sequence, or a higher
// one, has all that was written before the call of End. It panics if ctx is nil.
//
// End is blocking: it waits for the servers. It takes effect when it asks for the last
// sequence. A leader that is cut off from the others may answer that, with old
// contents, for up to 10 seconds.
func (s *Store[E]) End(ctx context.Context) (at Position, err error) {
	needContext(ctx, "Store.End")
	err = s.ask(ctx, func(ctx context.Context) error {
		there, err := s.last(ctx) // LP(End)
		if err != nil {
			return err
		}
		m, err := s.latest(ctx, there, func(m *message) bool { return m.Kind != wish && m.Part == m.Parts })
		if err == nil && m != nil {
			at = Position{m.seq, m.Line, m.subject[len(s.prefix):]}
		}
		return err
	})
	if err != nil {
		return Position{}, failed("End", err)
	}
	return at, nil
}

// follow yields the events behind at. Its state has no changesets: what a record says
// about one is not checked again.
func (s *Store[E]) follow(ctx context.Context, at *state, yield func(Event[E], error) bool) error {
	return s.read(ctx, at.seq, 0, func(m *message) error {
		if m.Kind == wish {
			at.seq, at.parts = m.seq, nil
			return nil
		}
		switch gap := at.line != 0 && m.Line != at.line+1; {
		case gap && m.Line > at.line+1 && m.Kind == Started:
			return fmt.Errorf("%w: message %d follows %d", ErrPruned, m.seq, at.seq)
		case gap && m.Line > at.line+1:
			return corrupt(m, "line %d follows line %d", m.Line, at.line)
		case gap, m.Kind != Claimed && at.token != "" && m.subject != s.prefix+at.token, m.Kind == Claimed && at.token != "" && m.Previous != at.token:
			return fmt.Errorf("%w: message %d is line %d of %q, after line %d of %q", ErrRewound, m.seq, m.Line, m.subject, at.line, at.token)
		case at.line == 0 && m.Line != 1 && m.Kind != Started:
			return corrupt(m, "the beginning of the trail is lost")
		}
		e, parts, err := at.join(m)
		if err != nil {
			return err
		}
		at.seq, at.line, at.parts, at.token = m.seq, m.Line, parts, m.subject[len(s.prefix):]
		if e == nil {
			return nil
		}
		event, err := s.event(at, e)
		if err != nil {
			return err
		}
		if !yield(event, nil) {
			return errEnough
		}
		return nil
	})
}

// event returns the event of a record.
func (s *Store[E]) event(at *state, e *event) (Event[E], error) {
	v := Event[E]{Position: Position{at.seq, at.line, at.token}, ChangesetID: e.ID, Kind: e.Kind, Ordinal: e.Ordinal, Holder: e.Holder}
	var err error
	switch e.Kind {
	case Started:
		v.Previous = e.Previous
	case Appended:
		v.Entries, err = decodeAll(s.values, e, nil)
	case Sealed:
		v.Manifest = cowchangeset.Manifest{Len: e.Len, Last: e.Last}
	case Aborted:
		v.Reason = string(e.body)
	case Applied:
		v.Next = e.Next
	case Pruned:
		v.Before = e.Next
	case Claimed:
	default:
		err = fmt.Errorf("changeset: unknown kind %q: a later version has written it", e.Kind)
	}
	return v, err
}
