package chain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/latchfree/latchfree/internal/folder"
)

// A Scanner reads the lines of a journal, which are those of its segments one
// after the other, and checks everything that can be.
type Scanner struct {
	lines
	Skims bool // of a segment that the next one follows, it reads only the header
	After int  // but all of those with later lines; 0: of none
	Waits bool // the bytes behind the last newline may be part of a write

	State   *State
	entries int
	Number  int    // of the last line
	Read    int    // how many lines were read
	headers int    // how many of them are headers
	bytes   int64  // how long they are
	Hash    Digest // of the last line
	before  Digest // of the line before the first one
	start   int    // the number of that line
	Whole   bool   // the lines before the next one were all read
	tail    Digest // at the next header: as the segment before it ends, if that was skimmed

	Size         int64 // of the lines so far, in the segment that is read
	Torn         int64 // at the end: the bytes that are no line
	Unterminated bool  // at the end: they are a line, all but for the newline
	Ended        bool
}

// Scan returns a scanner of segments. Its owner must close it.
func Scan(from Source, files []Segment) *Scanner {
	_, live := from.(*View)
	return &Scanner{lines: lines{From: from, Files: slices.Clone(files), Live: live, At: -1}, Whole: true, State: NewState(), Hash: NoHash(), before: NoHash()}
}

// Next returns the next line, which is good until the next call, io.EOF at the
// end, a *CorruptError, or an error of the source.
func (s *Scanner) Next() (*Line, error) {
	for !s.Ended {
		if s.File == nil {
			if s.At+1 == len(s.Files) {
				break
			}
			if err := s.lines.Open(s.At+1, 0, s.Files[s.At+1].Size, 0, Digest{}); err != nil {
				return nil, fmt.Errorf("journal: reading line %d: %w", s.Number+1, err)
			}
			s.Size = 0
		}
		if s.Read > 0 && s.Size > 0 && s.skips() {
			if err := s.skip(); err != nil {
				return nil, fmt.Errorf("journal: reading line %d: %w", s.Number+1, err)
			}
			continue
		}
		c, rest, err := s.lines.next()
		last := s.At+1 == len(s.Files)
		switch {
		case err == nil:
			return s.take(c)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, s.corrupt("the file is shorter than it was")
		case err != io.EOF:
			return nil, fmt.Errorf("journal: reading line %d: %w", s.Number+1, err)
		case last:
			s.Ended = true
			return s.complete(rest)
		case s.Size == 0:
			return nil, s.corrupt("the segment has no header")
		case len(rest) > 0:
			return nil, s.corrupt("it does not end in its segment")
		}
		s.Whole = true
		s.lines.Close()
	}
	s.Ended = true
	if missing := s.Missing(); missing != nil {
		return nil, missing
	}
	return nil, io.EOF
}

// skips reports whether the rest of the segment need not be read.
func (s *Scanner) skips() bool {
	if !s.Skims || s.Size > s.Files[s.At].Header || s.At+1 == len(s.Files) || s.Files[s.At].Number+1 != s.Files[s.At+1].Number {
		return false
	}
	if s.After == 0 {
		return true
	}
	next, err := s.From.Open(s.Files[s.At+1].Name())
	if err != nil {
		return false // it is opened again
	}
	defer next.Close()
	p := parser{rest: make([]byte, 40)}
	next.ReadAt(p.rest, 0)
	p.expect(lineKey)
	first := p.uint()
	return p.why == "" && first <= uint64(s.After)
}

// skip goes to the end of a segment, and notes how that ends.
func (s *Scanner) skip() error {
	end := s.Files[s.At].Size
	text := make([]byte, min(end, int64(len(s.tail)+len(lineEnd)+1)))
	if _, err := s.File.ReadAt(text, end-int64(len(text))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(s.tail[:])
	if rest, ok := bytes.CutSuffix(text, []byte(lineEnd+"\n")); ok {
		copy(s.tail[:], rest)
	}
	s.Whole = false
	s.lines.Close()
	return nil
}

// take makes a line part of the state. It returns as next does.
func (s *Scanner) take(c *checked) (*Line, error) {
	l, why := &c.Line, c.why
	l.At, l.End = uint64(s.Size), uint64(s.Size+c.length())
	if why == "" {
		why = s.place(c)
	}
	if why != "" && s.Read == 0 {
		why = "not a journal: " + why
	}
	if why != "" {
		return nil, s.corrupt(why)
	}
	if s.Read == 0 {
		s.before, s.start = c.prev, c.number-1
	}
	s.Read++
	s.Number, s.Hash = c.number, c.hash
	s.Size, s.bytes = s.Size+c.length(), s.bytes+c.length()
	if l.Op == OpJournal {
		s.headers++
		s.Files[s.At].Header = s.Size
	}
	s.entries += len(l.Values)
	return l, nil
}

// place makes a line part of the state, or returns why it cannot come next.
func (s *Scanner) place(c *checked) (why string) {
	l := &c.Line
	switch {
	case l.Op == OpJournal && s.Size > 0:
		return "a header, and no segment begins here"
	case l.Op == OpJournal:
		return s.placeHeader(c)
	case s.Read == 0:
		return "its first line is no header"
	case s.Size == 0:
		return "the segment has no header"
	}
	known, why := s.State.Check(l)
	switch {
	case why != "":
		return fmt.Sprintf("%s of changeset %q: %s", l.Op, l.ID, why)
	case known:
		return fmt.Sprintf("%s of changeset %q: it says nothing new", l.Op, l.ID)
	}
	s.State.Apply(l)
	return ""
}

// placeHeader is place for a header.
func (s *Scanner) placeHeader(c *checked) (why string) {
	if why := s.checkHeader(c); why != "" {
		return why
	}
	if s.follows(c) && s.Whole {
		s.State.Apply(&c.Line)
		return ""
	}
	before := len(s.State.Holes)
	s.State.adopt(&c.Line)
	for i := range s.State.Holes[before:] {
		s.State.Holes[before+i].line = s.Number
	}
	return ""
}

// checkHeader returns why a header cannot come next, or "".
func (s *Scanner) checkHeader(c *checked) (why string) {
	l, next := &c.Line, s.follows(c)
	switch {
	case l.Op != OpJournal:
		return "the segment has no header"
	case s.Read == 0 && (c.number == 1) != (l.Segment == 1):
		return "no such header can be"
	case l.Segment != s.Files[s.At].Number:
		return fmt.Sprintf("the file is named as segment %d, and says that it is segment %d", s.Files[s.At].Number, l.Segment)
	case next && s.Whole && c.number != s.Number+1:
		return fmt.Sprintf("it says that it is line %d", c.number)
	case next && c.prev != s.ending():
		return "its prev is not the hash of the line before it"
	case s.Read > 0 && c.number <= s.Number:
		return fmt.Sprintf("it says that it is line %d", c.number)
	case next && s.Whole:
		return s.State.checkNext(l)
	}
	return s.State.checkAdopted(l)
}

// follows reports whether a header is of the segment after the one before.
func (s *Scanner) follows(c *checked) bool {
	return s.Read > 0 && c.Segment == s.State.Segment+1
}

// ending returns the hash of the last line of the segment that is before the next header.
func (s *Scanner) ending() Digest {
	if s.Whole {
		return s.Hash
	}
	return s.tail
}

// Missing returns a CorruptError if segments are missing between others or before them,
// and no line says why.
func (s *Scanner) Missing() error {
	for _, h := range s.State.Holes {
		if !s.State.Declared(h.Segment) {
			return &CorruptError{Line: h.line + 1, File: FileName(h.Segment), Reason: "the segment is missing"}
		}
	}
	if !s.Headless() || s.State.Declared(s.State.Begun-1) {
		return nil
	}
	return &CorruptError{Line: s.start, File: FileName(s.State.Begun - 1), Reason: fmt.Sprintf(
		"the segment is missing, and changeset %d was not pruned", s.State.first)}
}

// Headless reports whether the oldest segments are missing, though they have lines of
// changesets that were not pruned.
func (s *Scanner) Headless() bool {
	return s.State.Begun > 1 && (s.State.Needed() < s.State.Begun || s.State.blank >= s.State.first)
}

// complete looks for a line at the end that lost its newline. A write that was cut off
// there leaves such a line, and so does damage to the last byte of an acknowledged one:
// so the line counts, unless s waits for its newline.
func (s *Scanner) complete(rest []byte) (*Line, error) {
	s.Torn = int64(len(rest))
	n := s.lineIn(rest)
	switch {
	case s.Read == 0 || n == 0 && s.Size == 0:
		return nil, s.corrupt("the segment has no header")
	case n == 0 || s.Waits && s.Size > 0:
		return s.Next() // the end
	case len(rest) > n+1:
		return nil, s.corrupt("its newline is damaged, and something follows it")
	}
	c := new(checked)
	s.blocks.check(c, rest[:n])
	if s.Waits { // for a header; what is wrong even with its newline comes first
		why := c.why
		if why == "" {
			why = s.checkHeader(c)
		}
		if missing := s.Missing(); why == "" && missing != nil {
			return nil, missing
		}
		return nil, s.corrupt(cmp.Or(why, "the segment has no header"))
	}
	l, err := s.take(c)
	if err == nil {
		s.Torn, s.Unterminated = int64(len(rest)-n), true
	}
	return l, err
}

// lineIn returns the length of the line that text begins with, if it is one and may
// come next, but for its newline; or 0.
func (s *Scanner) lineIn(text []byte) int {
	prev := s.Hash
	if s.Size == 0 {
		prev = s.ending()
	}
	tail := slices.Concat([]byte(prevKey), prev[:], []byte(`"`+hashKey))
	for from := 0; ; from++ { // a value may have the same in it
		i := bytes.Index(text[from:], tail)
		if i < 0 {
			return 0
		}
		from += i
		n := from + len(tail) + len(s.Hash) + len(lineEnd)
		if n > len(text) {
			return 0
		}
		if _, _, why := cutHash(text[:n]); why == "" {
			return n
		}
	}
}

// all reads to the end. After each line it calls each, if there is one.
func (s *Scanner) all(each func(*Scanner) error) error {
	for {
		_, err := s.Next()
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

// Last returns the last line.
func (s *Scanner) Last() Anchor { return Anchor{Line: s.Number, Hash: s.Hash.String()} }

// corrupt returns the error for a bad line behind the last good one.
func (s *Scanner) corrupt(why string) error {
	return &CorruptError{File: s.Files[s.At].Name(), Line: s.Number + 1, Offset: s.Size, Reason: why}
}

// Survey reads segments. If it skims and finds damage, it reads all to name the first.
func Survey(ctx context.Context, from Source, files []Segment, skims bool) (*Scanner, error) {
	s := Scan(from, files)
	s.Skims = skims
	err := s.all(func(*Scanner) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
	s.Close()
	if corrupt := new(CorruptError); skims && errors.As(err, &corrupt) {
		if all, first := Survey(ctx, from, files, false); first != nil {
			return all, first
		}
	}
	return s, err
}

// Identify returns an error if a journal is not the one that is wanted.
func Identify(journal, wanted string) error {
	if wanted != "" && journal != wanted {
		return fmt.Errorf("journal: it is %q, and not %q, as Options.Identity says", journal, wanted)
	}
	return nil
}

// Mend removes the torn tail of the last segment, and gives the last line the newline that
// it lost.
func (s *Scanner) Mend(f folder.File) error {
	if s.Unterminated {
		if err := f.Truncate(s.Size - 1); err != nil {
			return err
		}
		return folder.Write(f, []byte("\n"))
	}
	if s.Torn > 0 {
		return f.Truncate(s.Size)
	}
	return nil
}
