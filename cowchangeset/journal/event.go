package journal

import (
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Event is the meaning of one line of a journal. Fields that do not belong to its Kind
// are zero. The caller owns everything in it.
type Event[E any] struct {
	Line int    // in the journal
	Hash string // of the line
	Kind Kind

	ChangesetID string
	Ordinal     uint64 // of the changeset; of Lost: see Gap
	Previous    string // of Started: the ID of the changeset before it

	Entries  []cowchangeset.Entry[E] // of Appended
	Manifest cowchangeset.Manifest   // of Sealed
	Reason   string                  // of Aborted; of Lost: what was wrong with the segment
	Next     uint64                  // of Applied
	Before   uint64                  // of Pruned: the ordinal of the first changeset that is kept
	Segment  uint64                  // of Rotated: the number of the segment that begins; of Lost: of the one that is missing
	Journal  string                  // of Rotated: the journal's identity
}

// Anchor returns the line and its hash.
func (e Event[E]) Anchor() Anchor { return Anchor{Line: e.Line, Hash: e.Hash} }

// Kind says which call an Event comes from.
type Kind uint8

const (
	Started  Kind = iota + 1 // Journal.Start
	Appended                 // Journal.Append
	Sealed                   // Journal.Seal
	Aborted                  // Journal.Abort
	Applied                  // Journal.Applied
	Pruned                   // Journal.Prune
	Rotated                  // a segment begins, maybe the first one
	Lost                     // Repair has taken a damaged segment out
)

// String returns the constant's name in lower case.
func (k Kind) String() string {
	names := []string{"started", "appended", "sealed", "aborted", "applied", "pruned", "rotated", "lost"}
	if k < Started || k > Lost {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return names[k-Started]
}

// kindOf returns the Kind of lines with an op.
func kindOf(o op) Kind {
	ops := []op{opStart, opAppend, opSeal, opAbort, opApplied, opPrune, opJournal, opGap} // as the constants above
	return Started + Kind(slices.Index(ops, o))
}

// eventOf returns the event of the last line that s has read. It runs user code.
func eventOf[E any](path string, s *scanner, l *line, d *decoder[E]) (e Event[E], err error) {
	e = Event[E]{Line: s.number, Hash: s.hash.String(), Kind: kindOf(l.op)}
	switch l.op {
	case opJournal:
		e.Segment, e.Journal = s.state.segment, l.journal
		return e, nil
	case opPrune:
		e.Before = l.before
		return e, nil
	case opGap:
		e.Segment, e.Ordinal, e.Reason = l.segment, l.ordinal, l.reason
		return e, nil
	}
	e.ChangesetID, e.Previous, e.Reason, e.Next = l.id, l.previous, l.reason, l.next
	if c := s.state.find(l.id); c != nil {
		e.Ordinal = c.ordinal
	}
	if l.op == opSeal {
		e.Manifest = cowchangeset.Manifest{Len: int(l.count), Last: l.last}
	}
	e.Entries, err = d.appendAll(nil, path, s.number, l)
	return e, err
}
