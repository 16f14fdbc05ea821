package chain

import (
	"cmp"
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

// A loader reads changesets of a cut.
type loader[E any] struct {
	Cut
	lines
	at      place // up to where lines were read
	number  int   // of the last line; 0 if any may follow
	hash    Digest
	decoder Decoder[E]
}

// Load yields the changesets of a cut, the wanted ones with entries, and those of which some
// are lost: how many it has left only reading them tells. It reads each by itself, from
// its start to its last entry.
func Load[E any](ctx context.Context, c Cut, wanted func(Changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	l := &loader[E]{Cut: c, lines: lines{From: c.from, Files: c.files, decodes: true}, decoder: Decoder[E]{Upcast: c.upcast}}
	defer l.Close()
	for _, k := range c.list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		saved := cowchangeset.Saved[E]{
			Header:  cowchangeset.Header{ID: k.ID, Ordinal: k.Ordinal, Previous: k.previous},
			Sealed:  k.sealed,
			Aborted: k.aborted,
			Reason:  k.reason,
			Applied: k.applied,
		}
		if !wanted(k.Changeset) && l.complete(k.Changeset) {
			saved.Manifest = cowchangeset.Manifest{Len: int(k.Count), Last: k.Last}
		} else if k.Count > 0 {
			var err error
			if saved.Entries, err = l.entries(ctx, k.Changeset); err != nil {
				return named(ctx, c, err)
			}
		}
		if !yield(saved) {
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

// entries returns the entries of a changeset. If a segment is missing, there may be fewer than
// the journal says: Open has seen a gap that says so.
func (l *loader[E]) entries(ctx context.Context, c Changeset) (all []cowchangeset.Entry[E], err error) {
	all = make([]cowchangeset.Entry[E], 0, min(c.Count, 1<<20))
	first, past := l.find(c.From.Segment), l.find(c.to.Segment+1)
	l.number = 0
	for i := first; i < past; i++ {
		s := l.Files[i]
		if i > first && l.Files[i-1].Number+1 < s.Number {
			l.number = 0
		}
		l.at = place{s.Number, 0}
		if s.Number == c.From.Segment {
			l.at = c.From
		}
		end := s.Size
		if s.Number == c.to.Segment {
			end = min(end, int64(c.to.offset))
		}
		if all, err = l.segment(ctx, i, end, c.ID, all); err != nil {
			return nil, err
		}
	}
	if n := uint64(len(all)); (n != c.Count || all[n-1].Seq != c.Last) && l.complete(c) {
		return nil, l.corrupt(fmt.Sprintf("changeset %q has %d entries here, and not %d", c.ID, n, c.Count))
	}
	if len(all) == 0 {
		return nil, nil // all are lost
	}
	return all, nil
}

// complete reports whether all segments are there that have entries of a changeset.
func (l *loader[E]) complete(c Changeset) bool {
	return c.Count == 0 || uint64(l.find(c.to.Segment+1)-l.find(c.From.Segment)) > c.to.Segment-c.From.Segment
}

// find returns the segment with a number or, if it is not there, the next one.
func (l *loader[E]) find(number uint64) int {
	i, _ := slices.BinarySearchFunc(l.Files, number, func(s Segment, n uint64) int { return cmp.Compare(s.Number, n) })
	return i
}

// segment appends the entries of a changeset that are in a segment before its end.
func (l *loader[E]) segment(ctx context.Context, i int, end int64, id string, all []cowchangeset.Entry[E]) ([]cowchangeset.Entry[E], error) {
	err := l.Open(i, int64(l.at.offset), end, 0, Digest{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, l.corrupt("the segment is missing")
	}
	for err == nil && ctx.Err() == nil {
		line, rest, failed := l.next()
		err = failed
		last := err == io.EOF
		switch {
		case err == nil:
		case last && len(rest) == 0:
			return all, nil
		case last && i == len(l.Files)-1: // perhaps a line without a newline
			line = new(checked)
			l.blocks.check(line, rest)
		case last || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, l.corrupt("the journal ends here, and did not")
		default:
			return nil, fmt.Errorf("journal: reading line %d: %w", l.number+1, err)
		}
		if all, err = l.take(line, id, all); last || err != nil {
			return all, err
		}
	}
	if err != nil {
		return nil, fmt.Errorf("journal: reading line %d: %w", l.number+1, err)
	}
	return nil, context.Cause(ctx)
}

// take appends the entries of a line, if they are of a changeset.
func (l *loader[E]) take(c *checked, id string, all []cowchangeset.Entry[E]) (_ []cowchangeset.Entry[E], err error) {
	why := c.why
	switch {
	case why != "":
	case (c.Op == OpJournal) != (l.at.offset == 0) || c.Op == OpJournal && c.Segment != l.at.Segment:
		why = "a header of another segment, or none"
	case l.number > 0 && c.number != l.number+1:
		why = fmt.Sprintf("it says that it is line %d", c.number)
	case l.number > 0 && c.prev != l.hash:
		why = "its prev is not the hash of the line before it"
	case c.Op == OpAppend && c.ID == id && len(all) > 0 && all[len(all)-1].Seq >= c.First:
		why = OutOfOrder(c.First, all[len(all)-1].Seq)
	}
	if why != "" {
		return nil, l.corrupt(why)
	}
	l.number, l.hash = c.number, c.hash
	l.at.offset += uint64(c.length())
	if c.Op == OpAppend && c.ID == id {
		return l.decoder.AppendAll(all, l.path, l.number, &c.Line)
	}
	return all, nil
}

func (l *loader[E]) corrupt(why string) error {
	return &CorruptError{File: FileName(l.at.Segment), Line: l.number + 1, Offset: int64(l.at.offset), Reason: why}
}
