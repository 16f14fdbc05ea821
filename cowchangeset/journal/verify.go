package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Report is what Verify has found.
type Report struct {
	Journal    string // its identity
	Segments   int
	Lines      int // the headers of segments are some of them
	Changesets int // those that were not pruned
	Entries    int // also those of changesets that were pruned and whose lines are there
	Bytes      int64
	Torn       int64  // at the end, after the last line: Open would remove them
	Hash       string // of the last line, in hexadecimal; 64 zeros if there is none
	Last       Anchor // the same, with its number
	Gaps       []Gap  // the segments that Repair has taken out, and that are not back
}

// Gap is a damaged segment that Repair has taken out of a journal.
type Gap struct {
	Segment uint64
	Ordinal uint64 // if not 0, changesets up to this one may be lost as a whole
	SHA256  string // of its file, in hexadecimal; empty if there was none
	Reason  string // what was wrong with it
}

func (s *scanner) report() Report {
	var gaps []Gap
	for _, g := range s.state.gaps {
		missing := slices.ContainsFunc(s.state.holes, func(h hole) bool { return h.segment == g.Segment })
		if missing || g.Segment+1 == s.state.begun && s.headless() {
			gaps = append(gaps, g)
		}
	}
	return Report{
		Gaps:       gaps,
		Journal:    s.state.journal,
		Lines:      s.read,
		Changesets: len(s.state.list),
		Entries:    s.entries,
		Bytes:      s.bytes,
		Torn:       s.torn,
		Hash:       s.hash.String(),
		Last:       s.last(),
		Segments:   s.headers,
	}
}

// Verify reads all of the journal at path, which others may have open, and checks it. Open
// and Resume read the last segment, and what is neither applied nor aborted: damage to
// other segments shows here. Verify changes nothing, and does not look into values. It
// returns a *CorruptError for the first damage, with a report of the lines before it, or
// an error of the disk.
//
// Two journals with the same Hash have the same lines. Keep the Hash elsewhere to detect
// that somebody has changed lines and made their hashes anew: the chain by itself cannot
// show that. Unless since is the zero Anchor, the journal must have its line and hash:
// then all lines up to there are as they were. It is enough if the first segment begins
// right behind that line. If the line is in a segment that was dropped, the error is
// ErrDropped.
func Verify(path string, since Anchor) (Report, error) {
	from, err := find(path)
	if err != nil {
		return Report{}, err
	}
	r, err := verify(from, since)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (journal at %s)", err, path)
	}
	return r, err
}

// verify looks again at damage, as Reader.load does.
func verify(from lister, since Anchor) (Report, error) {
	for was := (CorruptError{}); ; {
		r, err := verifyOnce(from, since)
		if errors.Is(err, errVanished) {
			continue // a writer's progress
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || *corrupt == was {
			return r, err
		}
		was = *corrupt
	}
}

func verifyOnce(from lister, since Anchor) (Report, error) {
	v, err := look(from, 0)
	if err != nil {
		return Report{}, err
	}
	defer v.close()
	s := scan(v, v.files)
	defer s.close()
	w := &witness{Anchor: since}
	if err := s.all(w.look); err != nil {
		return s.report(), err
	}
	return s.report(), w.missing(s)
}
