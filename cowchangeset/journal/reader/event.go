package reader

import (
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
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
func (e Event[E]) Anchor() journal.Anchor { return journal.Anchor{Line: e.Line, Hash: e.Hash} }

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
func kindOf(o chain.Op) Kind {
	ops := []chain.Op{chain.OpStart, chain.OpAppend, chain.OpSeal, chain.OpAbort, chain.OpApplied, chain.OpPrune, chain.OpJournal, chain.OpGap} // as the constants above
	return Started + Kind(slices.Index(ops, o))
}

// eventOf returns the event of the last line that s has read. It runs user code.
func eventOf[E any](path string, s *chain.Scanner, l *chain.Line, d *chain.Decoder[E]) (e Event[E], err error) {
	e = Event[E]{Line: s.Number, Hash: s.Hash.String(), Kind: kindOf(l.Op)}
	switch l.Op {
	case chain.OpJournal:
		e.Segment, e.Journal = s.State.Segment, l.Journal
		return e, nil
	case chain.OpPrune:
		e.Before = l.Before
		return e, nil
	case chain.OpGap:
		e.Segment, e.Ordinal, e.Reason = l.Segment, l.Ordinal, l.Reason
		return e, nil
	}
	e.ChangesetID, e.Previous, e.Reason, e.Next = l.ID, l.Previous, l.Reason, l.Next
	if c := s.State.Find(l.ID); c != nil {
		e.Ordinal = c.Ordinal
	}
	if l.Op == chain.OpSeal {
		e.Manifest = cowchangeset.Manifest{Len: int(l.Count), Last: l.Last}
	}
	e.Entries, err = d.AppendAll(nil, path, s.Number, l)
	return e, err
}
