package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A scanner reads the lines of a file and checks everything that can be.
type scanner struct {
	r    *bufio.Reader
	long []byte // a line that does not fit the buffer of r

	state   *state
	lines   int
	entries int
	size    int64 // of the lines so far
	hash    string
	torn    int64 // at the end: the bytes after the last newline
}

// scanBuffer is how much of a file is read at once: so much that the system calls
// are nothing beside the hashing.
const scanBuffer = 32 << 10

func newScanner(r io.Reader) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, scanBuffer), state: newState(), hash: noHash()}
}

// next returns the next line but the header, io.EOF at the end, a
// *CorruptError, or an error of the reader.
func (s *scanner) next() (*line, error) {
	for {
		text, err := s.read()
		switch {
		case err == io.EOF:
			s.torn = int64(len(text))
			if s.lines == 0 && !bytes.HasPrefix(header(), text) {
				return nil, s.corrupt("not a journal")
			}
			return nil, io.EOF
		case err != nil:
			return nil, fmt.Errorf("journal: reading line %d: %w", s.lines+1, err)
		}
		l, hash, why := decode(text, s.lines+1, s.hash)
		first := s.lines == 0
		switch {
		case why != "":
		case first != (l.op == opJournal):
			why = "a header, and only a header, is the first line"
		case !first:
			why = s.fits(l)
		}
		if why != "" {
			if first {
				why = "not a journal: " + why
			}
			return nil, s.corrupt(why)
		}
		s.lines++
		s.size += int64(len(text)) + 1
		s.hash = hash
		if !first {
			s.entries += len(l.values)
			s.state.apply(l)
			return l, nil
		}
	}
}

// fits returns why a line cannot come next.
func (s *scanner) fits(l *line) string {
	known, why := s.state.check(l)
	switch {
	case why != "":
		return fmt.Sprintf("%s of changeset %q: %s", l.op, l.id, why)
	case known:
		return fmt.Sprintf("%s of changeset %q: it says nothing new", l.op, l.id)
	}
	return ""
}

// all reads to the end.
func (s *scanner) all() error {
	for {
		if _, err := s.next(); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

func (s *scanner) corrupt(why string) error {
	return &CorruptError{Line: s.lines + 1, Offset: s.size, Reason: why}
}

// read returns the bytes up to the next newline, without it, or the rest of the
// file and io.EOF. They are good until the next read.
func (s *scanner) read() ([]byte, error) {
	text, err := s.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		s.long = s.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			s.long = append(s.long, text...)
			text, err = s.r.ReadSlice('\n')
		}
		s.long = append(s.long, text...)
		text = s.long
	}
	if err == nil {
		text = text[:len(text)-1]
	}
	return text, err
}
