package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
)

// ErrLeft: the loop was left.
var ErrLeft = errors.New("journal: loop left")

// Loop yields what run yields, and then its error, unless the loop was left.
func Loop[T any](run func(yield func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := run(func(v T) bool { return yield(v, nil) })
		if err != nil && err != ErrLeft {
			var none T
			yield(none, err)
		}
	}
}

// A Cut is the contents of a journal at one moment.
type Cut struct {
	path   string
	from   Source
	files  []Segment
	list   []listed
	upcast func(Value) (json.RawMessage, error)
}

// A listed changeset is one with the ID of the changeset before it, if that was not pruned.
type listed struct {
	Changeset
	previous string
}

// CutOf returns changesets of a state, which is that of the files.
func CutOf(path string, f Source, upcast func(Value) (json.RawMessage, error), s *State, list []*Changeset, files []Segment) Cut {
	c := Cut{path: path, from: f, files: slices.Clone(files), list: make([]listed, len(list)), upcast: upcast}
	for i, k := range list {
		c.list[i].Changeset = *k
		if n, ok := s.search(k.Ordinal - 1); ok {
			c.list[i].previous = s.List[n].ID
		}
	}
	return c
}

// A loader collects the entries of changesets.
type loader[E any] struct {
	Cut
	lines
	index   map[string]int // into list and entries, by ID; of those that are wanted
	entries [][]cowchangeset.Entry[E]
	place   place // up to which lines were read
	number  int   // of the last line
	hash    Digest
	decoder Decoder[E]
}

// Load yields the changesets of a cut, the wanted ones with entries. It reads from the
// start of each of these to its last entry. Starts come in the order of ordinals, so that
// it never goes back.
func Load[E any](ctx context.Context, c Cut, wanted func(Changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	l := &loader[E]{Cut: c, index: map[string]int{}, entries: make([][]cowchangeset.Entry[E], len(c.list)), decoder: Decoder[E]{Upcast: c.upcast}}
	defer l.lines.Close()
	end := place{}
	for i, c := range c.list {
		if c.Count > 0 && wanted(c.Changeset) {
			l.index[c.ID] = i
			if end.before(c.to) {
				end = c.to
			}
		}
	}
	l.lines = lines{From: c.from, Files: slices.Clone(c.files), decodes: true, At: -1}
	if i, ok := l.find(end.Segment); ok { // what is behind that is of no concern
		l.lines.Files = l.lines.Files[:i+1]
		l.lines.Files[i].Size = min(l.lines.Files[i].Size, int64(end.offset))
	}
	next := false
	for i := range c.list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, ok := l.index[c.list[i].ID]
		if ok {
			err := l.read(ctx, c.list[i].Changeset, next)
			if err == nil {
				err = l.check(i)
			}
			if err != nil {
				return named(ctx, c, err)
			}
		}
		next = ok
		if !yield(l.saved(i)) {
			return ErrLeft
		}
	}
	return nil
}

// named returns the error that reading all lines finds first, for damage that was found
// where not all are read.
func named(ctx context.Context, c Cut, err error) error {
	if corrupt := new(CorruptError); !errors.As(err, &corrupt) {
		return err
	}
	if _, first := Survey(ctx, c.from, c.files, false); first != nil {
		return first
	}
	return err
}

// read reads to the last entry of a changeset. Next says that the changeset before it was
// read too: then nothing is between them that could be damaged and is of no concern.
func (l *loader[E]) read(ctx context.Context, c Changeset, next bool) error {
	if l.place.before(c.From) && !(next && l.place.Segment == c.From.Segment) {
		i, ok := l.find(c.From.Segment)
		offset := int64(0)
		if ok {
			offset = int64(c.From.offset)
		}
		if err := l.begin(i, offset, 0); err != nil {
			return err
		}
	}
	for l.place.before(c.to) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if l.lines.At == len(l.lines.Files) {
			return nil
		}
		line, rest, err := l.lines.next()
		switch {
		case err == io.EOF && len(rest) == 0:
			err = l.begin(l.lines.At+1, 0, l.number)
			if n := l.lines.At; n < len(l.lines.Files) && l.lines.Files[n-1].Number+1 < l.lines.Files[n].Number {
				l.number = 0 // behind a gap
			}
		case err == io.EOF && l.lines.At+1 == len(l.lines.Files): // perhaps a line without a newline
			line = new(Checked)
			l.lines.blocks.check(line, rest)
			err = l.take(line)
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			err = l.corrupt("the journal ends here, and did not")
		case err != nil:
			err = fmt.Errorf("journal: reading line %d: %w", l.number+1, err)
		default:
			err = l.take(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find returns the segment with a number or, if it is not there, the next one.
func (l *loader[E]) find(number uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(l.lines.Files, number, func(s Segment, n uint64) int { return int(s.Number) - int(n) })
}

// begin goes on in segment i, behind the line with that number; 0 means any.
func (l *loader[E]) begin(i int, offset int64, number int) error {
	if l.number, l.place = number, (place{}); i < len(l.lines.Files) {
		l.place = place{l.lines.Files[i].Number, uint64(offset)}
		if err := l.lines.Open(i, offset, 0, Digest{}); errors.Is(err, fs.ErrNotExist) {
			return l.corrupt("the segment is missing")
		} else if err != nil {
			return fmt.Errorf("journal: reading line %d: %w", l.number+1, err)
		}
	}
	l.lines.At = i
	return nil
}

// take takes entries of a line that are wanted.
func (l *loader[E]) take(c *Checked) (err error) {
	why := c.Why
	switch {
	case why != "":
	case (c.Op == OpJournal) != (l.place.offset == 0) || c.Op == OpJournal && c.Segment != l.place.Segment:
		why = "a header of another segment, or none"
	case l.number > 0 && c.number != l.number+1:
		why = fmt.Sprintf("it says that it is line %d", c.number)
	case l.number > 0 && c.prev != l.hash:
		why = "its prev is not the hash of the line before it"
	}
	if why != "" {
		return l.corrupt(why)
	}
	l.number, l.hash = c.number, c.hash
	if i, ok := l.index[c.ID]; ok && c.Op == OpAppend && !l.place.before(l.list[i].From) && l.place.before(l.list[i].to) {
		if n := len(l.entries[i]); n == 0 {
			l.entries[i] = make([]cowchangeset.Entry[E], 0, min(l.list[i].Count, 1<<20))
		} else if l.entries[i][n-1].Seq >= c.First {
			return l.corrupt(OutOfOrder(c.First, l.entries[i][n-1].Seq))
		}
		l.entries[i], err = l.decoder.AppendAll(l.entries[i], l.path, l.number, &c.Line)
	}
	l.place.offset += uint64(c.length())
	return err
}

func (l *loader[E]) corrupt(why string) error {
	return &CorruptError{File: FileName(l.place.Segment), Line: l.number + 1, Offset: int64(l.place.offset), Reason: why}
}

// check returns an error if changeset i has other entries than the journal says, unless a
// segment is missing: then Open has seen a gap that says so.
func (l *loader[E]) check(i int) error {
	c, n := l.list[i], len(l.entries[i])
	first, _ := l.find(c.From.Segment)
	next, _ := l.find(c.to.Segment + 1)
	if uint64(n) == c.Count && l.entries[i][n-1].Seq == c.Last || uint64(next-first) <= c.to.Segment-c.From.Segment {
		return nil
	}
	return l.corrupt(fmt.Sprintf("changeset %q has %d entries here, and not %d", c.ID, n, c.Count))
}

// saved returns a changeset, and forgets its entries.
func (l *loader[E]) saved(i int) cowchangeset.Saved[E] {
	c := l.list[i]
	saved := cowchangeset.Saved[E]{
		Header:  cowchangeset.Header{ID: c.ID, Ordinal: c.Ordinal, Previous: c.previous},
		Entries: l.entries[i],
		Sealed:  c.sealed,
		Aborted: c.aborted,
		Reason:  c.reason,
		Applied: c.applied,
	}
	if _, wanted := l.index[c.ID]; !wanted {
		saved.Manifest = cowchangeset.Manifest{Len: int(c.Count), Last: c.Last}
	}
	l.entries[i] = nil
	return saved
}
