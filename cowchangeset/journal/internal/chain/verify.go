package chain

import (
	"errors"
	"slices"
)

// Report is what Verify has found.
type Report struct {
	Journal    string // its identity
	Segments   int
	Lines      int // the headers of segments are some of them
	Changesets int // those that were not pruned
	Pending    int // those of them that are neither applied nor aborted
	Entries    int // also those of changesets that were pruned and whose lines are there
	Bytes      int64
	Torn       int64 // at the end, after the last line: Open would remove them
	Last       Anchor
	Gaps       []Gap // the segments that Repair has taken out, and that are not back
}

// Gap is a damaged segment that Repair has taken out of a journal.
type Gap struct {
	Segment uint64
	Ordinal uint64 // if not 0, changesets up to this one may be lost as a whole
	SHA256  string // of its file, in hexadecimal; empty if there was none
	Reason  string // what was wrong with it
}

func (s *Scanner) report() Report {
	var gaps []Gap
	for _, g := range s.State.Gaps {
		missing := slices.ContainsFunc(s.State.Holes, func(h hole) bool { return h.Segment == g.Segment })
		if missing || g.Segment+1 == s.State.Begun && s.Headless() {
			gaps = append(gaps, g)
		}
	}
	pending := 0
	for _, c := range s.State.List {
		if !c.Finished() {
			pending++
		}
	}
	return Report{
		Pending:    pending,
		Gaps:       gaps,
		Journal:    s.State.Journal,
		Lines:      s.Read,
		Changesets: len(s.State.List),
		Entries:    s.entries,
		Bytes:      s.bytes,
		Torn:       s.Torn,
		Last:       s.Last(),
		Segments:   s.headers,
	}
}

// Verify looks again at damage, as Reader.load does.
func Verify(from Lister, since Anchor) (Report, error) {
	for was := (CorruptError{}); ; {
		r, err := verifyOnce(from, since)
		if errors.Is(err, ErrVanished) {
			continue // a writer's progress
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || *corrupt == was {
			return r, err
		}
		was = *corrupt
	}
}

func verifyOnce(from Lister, since Anchor) (Report, error) {
	v, err := OpenView(from, 0)
	if err != nil {
		return Report{}, err
	}
	defer v.Close()
	s := Scan(v, v.Files)
	defer s.Close()
	w := &witness{Anchor: since}
	if err := s.all(w.look); err != nil {
		return s.report(), err
	}
	return s.report(), w.missing(s)
}
