package journal

import "io"

// Report is what Verify has found.
type Report struct {
	Lines      int // the header is one
	Changesets int
	Entries    int
	Bytes      int64  // of the lines
	Torn       int64  // bytes after the last newline, which Open would remove
	Hash       string // of the last line, in hexadecimal; 64 zeros if there is none
}

// Verify reads a journal and checks all that Open checks, but changes nothing,
// and does not look into values. It returns a *CorruptError where Open does, with
// a report of what comes before, or an error of the reader.
//
// Two journals with the same Hash have the same lines. Who keeps it elsewhere can
// tell whether the lines up to there were changed since by somebody who made
// their hashes anew: the chain by itself cannot show that.
func Verify(r io.Reader) (Report, error) {
	s := newScanner(r)
	err := s.all()
	return Report{
		Lines:      s.lines,
		Changesets: len(s.state.list),
		Entries:    s.entries,
		Bytes:      s.size,
		Torn:       s.torn,
		Hash:       s.hash,
	}, err
}
