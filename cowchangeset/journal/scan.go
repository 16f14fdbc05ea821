package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A scanner reads the lines of a journal, which are those of its segments one
// after the other, and checks everything that can be.
type scanner struct {
	blocks *blocks
	block  *block // is being read, or nil

	state   *state
	entries int
	lines   int    // the number of the last line
	read    int    // how many lines were read
	headers int    // how many of them are headers
	bytes   int64  // how long they are
	hash    digest // of the last line
	before  digest // of the line before the first one
	start   int    // the number of that line
	head    uint64 // how many changesets were started before the first line, or before the last hole
	jumped  bool   // the last line is behind a hole
	from    string // the file that has the first line, if it is known

	// files are the segments, if what is read has several or they are known, with
	// the sizes that they had.
	files []segment
	at    int   // the one that is read
	ended bool  // all blocks were read
	size  int64 // of the lines so far, in that one
	torn  int64 // at the end: the bytes that are no line
	whole bool  // at the end: they are a line, all but for the newline
	live  bool  // somebody writes: the bytes behind the last newline may be part of a write
}

// scan returns a scanner of r, which has files, if they are known, one after the other.
// The caller must close it.
func scan(r io.Reader, files []segment) *scanner {
	return &scanner{blocks: &blocks{r: r, ahead: files != nil}, state: newState(), files: slices.Clone(files), hash: noHash(), before: noHash()}
}

func (s *scanner) close() { s.blocks.close() }

// next returns the next line, which is good until the next call, io.EOF at the
// end, a *CorruptError, or an error of the reader.
func (s *scanner) next() (*line, error) {
	for s.block == nil || len(s.block.lines) == 0 {
		if s.block != nil && s.block.err != nil {
			switch err := s.block.err; {
			case errors.Is(err, io.ErrUnexpectedEOF):
				return nil, s.corrupt("the file is shorter than it was")
			case err != io.EOF:
				return nil, fmt.Errorf("journal: reading line %d: %w", s.lines+1, err)
			case s.ended:
				return nil, io.EOF
			}
			s.ended = true
			return s.end(s.block.rest)
		}
		s.block = s.blocks.take(s.block)
	}
	text := &s.block.lines[0]
	s.block.lines = s.block.lines[1:]
	if at, size := s.ahead(); text.why == "" && at < len(s.files) && size+text.length() > s.files[at].size {
		return nil, s.corrupt("it does not end in its segment")
	}
	return s.take(text)
}

// length returns how many bytes a line has that is one.
func (c *checked) length() int64 {
	return int64(len(c.body) + len(hashKey) + len(c.hash) + len(lineEnd) + 1)
}

// ahead returns where the next line begins: which segment, and where in that.
func (s *scanner) ahead() (at int, size int64) {
	if s.read > 0 && s.at+1 < len(s.files) && s.size == s.files[s.at].size {
		return s.at + 1, 0
	}
	return s.at, s.size
}

// take makes a line part of the state. It returns as next does.
func (s *scanner) take(text *checked) (*line, error) {
	s.blocks.parse(text)
	l, why := &text.line, text.why
	switch {
	case why != "":
	case s.read == 0 && l.op == opJournal && (text.number == 1) != (l.segment == 1):
		why = "no such header can be"
	case text.jump != "" && (l.segment <= s.state.segment+1 || text.number <= s.lines+1):
		why = text.jump // and no segment is missing
	case text.jump == "" && s.read > 0 && l.op == opJournal && l.segment > s.state.segment+1:
		why = fmt.Sprintf("segment %d comes after segment %d", l.segment, s.state.segment)
	default:
		why = s.place(l)
	}
	if why != "" && s.read == 0 {
		why = "not a journal: " + why
	}
	if why != "" {
		return nil, s.corrupt(why)
	}
	if s.read == 0 {
		s.before, s.head, s.from, s.start = text.prev, l.ordinal, s.file(0), text.number-1
	}
	s.jumped = s.state.hole == l.segment && l.op == opJournal && s.read > 0
	if s.jumped {
		s.head = l.ordinal
		for i := range s.state.holes {
			s.state.holes[i].line = cmp.Or(s.state.holes[i].line, s.lines)
		}
	}
	s.read++
	s.lines, s.hash = text.number, text.hash
	n := text.length()
	s.size, s.bytes = s.size+n, s.bytes+n
	if l.op == opJournal {
		s.headers++
		if s.at < len(s.files) {
			s.files[s.at].header = s.size
		}
	}
	s.entries += len(l.values)
	return l, nil
}

// place makes a line part of the state, or returns why it cannot come next.
func (s *scanner) place(l *line) (why string) {
	if (s.read == 0) && l.op != opJournal {
		return "its first line is no header"
	}
	at, size := s.ahead()
	switch {
	case len(s.files) == 0 && l.op == opJournal && s.read > 0:
		at, size = at+1, 0
	case len(s.files) > 0 && l.op == opJournal && size > 0:
		return "a header, and no segment begins here"
	case len(s.files) > 0 && l.op != opJournal && size == 0:
		return "the segment has no header"
	}
	if s.head > 0 && s.state.unknown(l) {
		s.at, s.size = at, size
		return "" // of a changeset that was started in a segment that is not there
	}
	known, why := s.state.check(l)
	switch {
	case why != "" && l.op == opJournal:
		return why
	case why != "":
		return fmt.Sprintf("%s of changeset %q: %s", l.op, l.id, why)
	case known:
		return fmt.Sprintf("%s of changeset %q: it says nothing new", l.op, l.id)
	}
	if at < len(s.files) && l.op == opJournal && l.segment != s.files[at].number {
		return fmt.Sprintf("the file is named as segment %d, and says that it is segment %d", s.files[at].number, l.segment)
	}
	about := s.state.apply(l)
	if l.op == opGap { // the segment behind it stays as long as what the gap is about
		if i := slices.IndexFunc(s.files, func(f segment) bool { return f.number > l.segment }); i >= 0 {
			s.files[i].last = max(s.files[i].last, l.ordinal)
		}
	}
	if s.at, s.size = at, size; at < len(s.files) {
		s.files[at].last = max(s.files[at].last, about)
	}
	return ""
}

// end looks at the bytes after the last newline. It returns as next does.
func (s *scanner) end(rest []byte) (*line, error) {
	switch {
	case s.read == 0 && len(rest) > 0:
		return nil, s.corrupt("not a journal: there is no whole line")
	case s.at+1 < len(s.files) && s.size < s.files[s.at].size:
		return nil, s.corrupt("it has no newline, and a segment follows")
	case s.at+1 < len(s.files):
		return nil, s.corrupt("the segment has no header")
	case s.read == 0 && len(s.files) > 0:
		return nil, s.corrupt("not a journal: the file is empty")
	}
	l, err := s.complete(rest)
	if err == nil || err == io.EOF {
		if missing := s.missing(); missing != nil {
			return nil, missing
		}
	}
	return l, err
}

// missing returns a CorruptError if segments are missing between others or before them,
// and no line says why.
func (s *scanner) missing() error {
	if h := s.state.undeclared(); h != nil {
		return &CorruptError{Line: h.line + 1, File: fileName(h.segment), Reason: "the segment is missing"}
	}
	if !s.headless() {
		return nil
	}
	return &CorruptError{Line: s.start + 1, File: s.from, Reason: fmt.Sprintf(
		"the segments before it are missing, and changeset %d was not pruned", s.state.first)}
}

// headless reports whether changesets are missing that were not pruned, as the segments
// that they began in are, and no gap says so.
func (s *scanner) headless() bool {
	return s.read > 0 && s.state.started >= s.state.first && s.state.gaps[s.state.begun-1] == nil
}

// complete looks for a line at the end that lost its newline. A write that was cut off
// there leaves such a line, and so does damage to the last byte of an acknowledged one:
// so the line counts.
func (s *scanner) complete(rest []byte) (*line, error) {
	if s.torn = int64(len(rest)); s.live {
		return nil, io.EOF
	}
	n := s.lineIn(rest)
	if n == 0 {
		return nil, io.EOF
	}
	if len(rest) > n+1 {
		return nil, s.corrupt("its newline is damaged, and something follows it")
	}
	c := new(checked)
	c.body, c.hash, c.why = cutHash(rest[:n])
	l, err := s.take(c)
	if err == nil {
		s.torn, s.whole = int64(len(rest)-n), true
	}
	return l, err
}

// lineIn returns the length of the line that text begins with, if it is one and may
// come next, but for its newline; or 0.
func (s *scanner) lineIn(text []byte) int {
	tail := slices.Concat([]byte(prevKey), s.hash[:], []byte(`"`+hashKey))
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

// corrupt returns the error for a bad line behind the last good one.
func (s *scanner) corrupt(why string) error {
	at, size := s.ahead()
	return &CorruptError{File: s.file(at), Line: s.lines + 1, Offset: size, Reason: why}
}

// file returns the name of a segment, if it is known.
func (s *scanner) file(i int) string {
	if i < len(s.files) {
		return s.files[i].name()
	}
	return ""
}
