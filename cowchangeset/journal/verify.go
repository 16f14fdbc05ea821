package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Report is the result of Verify.
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
	Ordinal uint64 // lines of changesets up to this one may be lost
	SHA256  string // of its file, in hexadecimal; empty if there was none
	Reason  string // what was wrong with it
}

func (s *scanner) report() Report {
	var gaps []Gap
	if g := s.state.gaps[s.state.begun-1]; g != nil {
		gaps = append(gaps, *g)
	}
	for _, h := range s.state.holes {
		if g := s.state.gaps[h.segment]; g != nil {
			gaps = append(gaps, *g)
		}
	}
	return Report{
		Gaps:       gaps,
		Journal:    s.state.journal,
		Lines:      s.read,
		Changesets: len(s.state.all()),
		Entries:    s.entries,
		Bytes:      s.bytes,
		Torn:       s.torn,
		Hash:       s.hash.String(),
		Last:       Anchor{Line: s.lines, Hash: s.hash.String()},
		Segments:   s.headers,
	}
}

// Verify reads segments that follow one another, and makes all checks of Open, but
// changes nothing, and does not look into values. It returns a *CorruptError where Open
// does, with a report of the lines before it, or an error of the reader.
//
// Two journals with the same Hash have the same lines. Keep the Hash elsewhere to
// detect that somebody has changed lines and made their hashes anew: the chain by
// itself cannot show that. See VerifyFrom.
func Verify(r io.Reader) (Report, error) {
	s := scan(r, nil)
	err := s.all(nil)
	return s.report(), err
}

// VerifyFrom is Verify for the journal at path, which others may have open. Unless
// since is the zero Anchor, the journal must have the line and the hash of since: then
// all lines up to there are as they were. It is enough if the first segment begins
// right behind that line. If the line is in a segment that was dropped, the error is
// ErrDropped.
func VerifyFrom(path string, since Anchor) (Report, error) {
	from, err := find(path)
	if err != nil {
		return Report{}, err
	}
	r, err := verifyFrom(from, since)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (journal at %s)", err, path)
	}
	return r, err
}

// verifyFrom looks again at damage, as Reader.load does.
func verifyFrom(from lister, since Anchor) (Report, error) {
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
	s, end := scanFiles(v, v.files)
	defer end()
	w := &witness{Anchor: since}
	if err := s.all(w.look); err != nil {
		return s.report(), err
	}
	return s.report(), w.missing(s)
}
