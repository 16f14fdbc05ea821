package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A scanner reads the lines of a journal, which are those of its segments one
// after the other, and checks everything that can be.
type scanner struct {
	lines
	skims bool // of a segment that the next one follows, it reads only the header
	after int  // but all of those with later lines; 0: of none
	waits bool // the bytes behind the last newline may be part of a write

	state   *state
	entries int
	number  int    // of the last line
	read    int    // how many lines were read
	headers int    // how many of them are headers
	bytes   int64  // how long they are
	hash    digest // of the last line
	before  digest // of the line before the first one
	start   int    // the number of that line
	whole   bool   // the lines before the next one were all read
	tail    digest // at the next header: as the segment before it ends, if that was skimmed

	size  int64 // of the lines so far, in the segment that is read
	torn  int64 // at the end: the bytes that are no line
	fixed bool  // at the end: they are a line, all but for the newline
	ended bool
}

// scan returns a scanner of segments. Its owner must close it.
func scan(from source, files []segment) *scanner {
	_, live := from.(*view)
	return &scanner{lines: lines{from: from, files: slices.Clone(files), live: live, at: -1}, whole: true, state: newState(), hash: noHash(), before: noHash()}
}

// next returns the next line, which is good until the next call, io.EOF at the
// end, a *CorruptError, or an error of the source.
func (s *scanner) next() (*line, error) {
	for !s.ended {
		if s.file == nil {
			if s.at+1 == len(s.files) {
				break
			}
			if err := s.lines.open(s.at+1, 0, 0, digest{}); err != nil {
				return nil, fmt.Errorf("journal: reading line %d: %w", s.number+1, err)
			}
			s.size = 0
		}
		if s.read > 0 && s.size > 0 && s.skips() {
			if err := s.skip(); err != nil {
				return nil, fmt.Errorf("journal: reading line %d: %w", s.number+1, err)
			}
			continue
		}
		c, rest, err := s.lines.next()
		last := s.at+1 == len(s.files)
		switch {
		case err == nil:
			return s.take(c)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, s.corrupt("the file is shorter than it was")
		case err != io.EOF:
			return nil, fmt.Errorf("journal: reading line %d: %w", s.number+1, err)
		case last:
			s.ended = true
			return s.complete(rest)
		case s.size == 0:
			return nil, s.corrupt("the segment has no header")
		case len(rest) > 0:
			return nil, s.corrupt("it does not end in its segment")
		}
		s.whole = true
		s.lines.close()
	}
	s.ended = true
	if missing := s.missing(); missing != nil {
		return nil, missing
	}
	return nil, io.EOF
}

// skips reports whether the rest of the segment need not be read.
func (s *scanner) skips() bool {
	if !s.skims || s.size > s.files[s.at].header || s.at+1 == len(s.files) || s.files[s.at].number+1 != s.files[s.at+1].number {
		return false
	}
	if s.after == 0 {
		return true
	}
	next, err := s.from.Open(s.files[s.at+1].name())
	if err != nil {
		return false // it is opened again
	}
	defer next.Close()
	p := parser{rest: make([]byte, 40)}
	next.ReadAt(p.rest, 0)
	p.expect(lineKey)
	first := p.uint()
	return p.why == "" && first <= uint64(s.after)
}

// skip goes to the end of a segment, and notes how that ends.
func (s *scanner) skip() error {
	end := s.files[s.at].size
	text := make([]byte, min(end, int64(len(s.tail)+len(lineEnd)+1)))
	if _, err := s.file.ReadAt(text, end-int64(len(text))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(s.tail[:])
	if rest, ok := bytes.CutSuffix(text, []byte(lineEnd+"\n")); ok {
		copy(s.tail[:], rest)
	}
	s.whole = false
	s.lines.close()
	return nil
}

// take makes a line part of the state. It returns as next does.
func (s *scanner) take(c *checked) (*line, error) {
	l, why := &c.line, c.why
	l.at, l.end = uint64(s.size), uint64(s.size+c.length())
	if why == "" {
		why = s.place(c)
	}
	if why != "" && s.read == 0 {
		why = "not a journal: " + why
	}
	if why != "" {
		return nil, s.corrupt(why)
	}
	if s.read == 0 {
		s.before, s.start = c.prev, c.number-1
	}
	s.read++
	s.number, s.hash = c.number, c.hash
	s.size, s.bytes = s.size+c.length(), s.bytes+c.length()
	if l.op == opJournal {
		s.headers++
		s.files[s.at].header = s.size
	}
	s.entries += len(l.values)
	return l, nil
}

// place makes a line part of the state, or returns why it cannot come next.
func (s *scanner) place(c *checked) (why string) {
	l := &c.line
	switch {
	case l.op == opJournal && s.size > 0:
		return "a header, and no segment begins here"
	case l.op == opJournal:
		return s.placeHeader(c)
	case s.read == 0:
		return "its first line is no header"
	case s.size == 0:
		return "the segment has no header"
	}
	known, why := s.state.check(l)
	switch {
	case why != "":
		return fmt.Sprintf("%s of changeset %q: %s", l.op, l.id, why)
	case known:
		return fmt.Sprintf("%s of changeset %q: it says nothing new", l.op, l.id)
	}
	s.state.apply(l)
	return ""
}

// placeHeader is place for a header.
func (s *scanner) placeHeader(c *checked) (why string) {
	l, next := &c.line, s.read > 0 && c.segment == s.state.segment+1
	switch {
	case s.read == 0 && (c.number == 1) != (l.segment == 1):
		return "no such header can be"
	case l.segment != s.files[s.at].number:
		return fmt.Sprintf("the file is named as segment %d, and says that it is segment %d", s.files[s.at].number, l.segment)
	case next && s.whole && c.number != s.number+1:
		return fmt.Sprintf("it says that it is line %d", c.number)
	case next && c.prev != s.ending():
		return "its prev is not the hash of the line before it"
	case s.read > 0 && c.number <= s.number:
		return fmt.Sprintf("it says that it is line %d", c.number)
	}
	if next && s.whole {
		if why := s.state.checkNext(l); why != "" {
			return why
		}
		s.state.apply(l)
		return ""
	}
	if why := s.state.checkAdopted(l); why != "" {
		return why
	}
	known := len(s.state.holes)
	s.state.adopt(l)
	for i := range s.state.holes[known:] {
		s.state.holes[known+i].line = s.number
	}
	return ""
}

// ending returns the hash of the last line of the segment that is before the next header.
func (s *scanner) ending() digest {
	if s.whole {
		return s.hash
	}
	return s.tail
}

// missing returns a CorruptError if segments are missing between others or before them,
// and no line says why.
func (s *scanner) missing() error {
	for _, h := range s.state.holes {
		if !s.state.declared(h.segment) {
			return &CorruptError{Line: h.line + 1, File: fileName(h.segment), Reason: "the segment is missing"}
		}
	}
	if !s.headless() || s.state.declared(s.state.begun-1) {
		return nil
	}
	return &CorruptError{Line: s.start, File: fileName(s.state.begun - 1), Reason: fmt.Sprintf(
		"the segment is missing, and changeset %d was not pruned", s.state.first)}
}

// headless reports whether the oldest segments are missing, though they have lines of
// changesets that were not pruned.
func (s *scanner) headless() bool {
	return s.state.begun > 1 && (s.state.needed() < s.state.begun || s.state.blank >= s.state.first)
}

// complete looks for a line at the end that lost its newline. A write that was cut off
// there leaves such a line, and so does damage to the last byte of an acknowledged one:
// so the line counts.
func (s *scanner) complete(rest []byte) (*line, error) {
	s.torn = int64(len(rest))
	if s.waits {
		rest = nil
	}
	n := s.lineIn(rest)
	switch {
	case s.read == 0 || n == 0 && s.size == 0:
		return nil, s.corrupt("the segment has no header")
	case n == 0:
		return s.next() // the end
	}
	if len(rest) > n+1 {
		return nil, s.corrupt("its newline is damaged, and something follows it")
	}
	c := new(checked)
	s.blocks.check(c, rest[:n])
	l, err := s.take(c)
	if err == nil {
		s.torn, s.fixed = int64(len(rest)-n), true
	}
	return l, err
}

// lineIn returns the length of the line that text begins with, if it is one and may
// come next, but for its newline; or 0.
func (s *scanner) lineIn(text []byte) int {
	prev := s.hash
	if s.size == 0 {
		prev = s.ending()
	}
	tail := slices.Concat([]byte(prevKey), prev[:], []byte(`"`+hashKey))
	for from := 0; ; from++ { // a value may have the same in it
		i := bytes.Index(text[from:], tail)
		if i < 0 {
			return 0
		}
		from += i
		n := from + len(tail) + len(s.hash) + len(lineEnd)
		if n > len(text) {
			return 0
		}
		if _, _, why := cutHash(text[:n]); why == "" {
			return n
		}
	}
}

// all reads to the end. After each line it calls each, if there is one.
func (s *scanner) all(each func(*scanner) error) error {
	for {
		_, err := s.next()
		if err == io.EOF {
			return nil
		}
		if err == nil && each != nil {
			err = each(s)
		}
		if err != nil {
			return err
		}
	}
}

// last returns the last line.
func (s *scanner) last() Anchor { return Anchor{Line: s.number, Hash: s.hash.String()} }

// corrupt returns the error for a bad line behind the last good one.
func (s *scanner) corrupt(why string) error {
	return &CorruptError{File: s.files[s.at].name(), Line: s.number + 1, Offset: s.size, Reason: why}
}
