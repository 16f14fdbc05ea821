package journal

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

// Load yields the changesets that the journal has, and that were not pruned, when the
// loop begins, in the order of their ordinals: those that are neither applied nor aborted
// with their entries, and of all others what LoadEntries needs. If segments were lost, it
// may begin behind changesets of which nothing is known; see Repair. If it fails, it
// yields the error and ends: a *DecodeError for a value that cannot be decoded, a
// *CorruptError for a file that is damaged, or the cause of ctx. It reads the parts of the
// files that it needs. The entries of changesets that were open at the same time are in
// memory at the same time. Calls of other methods go on meanwhile, also from within the
// loop. Load panics if ctx is nil.
//
// Load is blocking: it waits for the files. It takes effect when the loop begins.
func (j *Journal[E]) Load(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	needContext(ctx, "Load")
	return loop(func(yield func(cowchangeset.Saved[E]) bool) error {
		return read(ctx, &j.log, func(s *state) []*changeset { return s.kept() }, func(c changeset) bool { return !c.finished() }, yield)
	})
}

// LoadEntries yields the entries of a changeset that was not pruned when the loop begins.
// If it fails, it yields the error and ends, as Load does; with ErrNotFound if there is no
// such changeset. Entries that were in a segment that Repair has taken out are left out.
// LoadEntries panics if ctx is nil.
//
// LoadEntries is blocking: it waits for the files. It takes effect when the loop begins.
func (j *Journal[E]) LoadEntries(ctx context.Context, id string) iter.Seq2[cowchangeset.Entry[E], error] {
	needContext(ctx, "LoadEntries")
	return loop(func(yield func(cowchangeset.Entry[E]) bool) error {
		err := read(ctx, &j.log, func(s *state) []*changeset {
			if c := s.find(id); c != nil {
				return []*changeset{c}
			}
			return nil
		}, func(changeset) bool { return true }, func(s cowchangeset.Saved[E]) bool {
			for _, e := range s.Entries {
				if !yield(e) {
					return false
				}
			}
			return false
		})
		switch err {
		case nil:
			return fmt.Errorf("%w: %q", ErrNotFound, id)
		case errLeft:
			return nil
		}
		return err
	})
}

// read yields changesets of a log, the wanted ones with entries.
func read[E any](ctx context.Context, g *log, which func(*state) []*changeset, wanted func(changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	cut, err := g.cut(which)
	if err != nil {
		return err
	}
	defer g.loaded()
	closed := false
	err = loadAll(ctx, cut, wanted, func(s cowchangeset.Saved[E]) bool {
		if !yield(s) {
			return false
		}
		g.mu.Lock()
		closed = !g.open
		g.mu.Unlock()
		return !closed
	})
	if closed {
		err = ErrClosed // others may change the files now
	}
	return err
}

// errLeft: the loop was left.
var errLeft = errors.New("journal: loop left")

// loop yields what run yields, and then its error, unless the loop was left.
func loop[T any](run func(yield func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := run(func(v T) bool { return yield(v, nil) })
		if err != nil && err != errLeft {
			var none T
			yield(none, err)
		}
	}
}

// A cut is the contents of a journal at one moment.
type cut struct {
	path   string
	from   source
	files  []segment
	list   []listed
	upcast func(Value) (json.RawMessage, error)
}

// A listed changeset is one with the ID of the changeset before it, if that was not pruned.
type listed struct {
	changeset
	previous string
}

// cut returns the present contents. Until loaded is called, no segment is dropped.
func (g *log) cut(which func(*state) []*changeset) (cut, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return cut{}, err
	}
	g.loading++
	return cutOf(g.path, g.folder, g.options, g.state, which(g.state), g.segments), nil // LP(Load, LoadEntries)
}

func (g *log) loaded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loading--
}

func cutOf(path string, f source, o Options, s *state, list []*changeset, files []segment) cut {
	c := cut{path: path, from: f, files: slices.Clone(files), list: make([]listed, len(list)), upcast: o.Upcast}
	for i, k := range list {
		c.list[i].changeset = *k
		if n, ok := s.search(k.ordinal - 1); ok {
			c.list[i].previous = s.list[n].id
		}
	}
	return c
}

// A loader collects the entries of changesets.
type loader[E any] struct {
	cut
	lines
	index   map[string]int // into list and entries, by ID; of those that are wanted
	entries [][]cowchangeset.Entry[E]
	place   place // up to which lines were read
	number  int   // of the last line
	hash    digest
	decoder decoder[E]
}

// loadAll yields the changesets of a cut, the wanted ones with entries. It reads from the
// start of each of these to its last entry. Starts come in the order of ordinals, so that
// it never goes back.
func loadAll[E any](ctx context.Context, c cut, wanted func(changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	l := &loader[E]{cut: c, index: map[string]int{}, entries: make([][]cowchangeset.Entry[E], len(c.list)), decoder: decoder[E]{upcast: c.upcast}}
	defer l.lines.close()
	end := place{}
	for i, c := range c.list {
		if c.count > 0 && wanted(c.changeset) {
			l.index[c.id] = i
			if end.before(c.to) {
				end = c.to
			}
		}
	}
	l.lines = lines{from: c.from, files: slices.Clone(c.files), decodes: true, at: -1}
	if i, ok := l.find(end.segment); ok { // what is behind that is of no concern
		l.lines.files = l.lines.files[:i+1]
		l.lines.files[i].size = min(l.lines.files[i].size, int64(end.offset))
	}
	next := false
	for i := range c.list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, ok := l.index[c.list[i].id]
		if ok {
			err := l.read(ctx, c.list[i].changeset, next)
			if err == nil {
				err = l.check(i)
			}
			if err != nil {
				return named(ctx, c, err)
			}
		}
		next = ok
		if !yield(l.saved(i)) {
			return errLeft
		}
	}
	return nil
}

// named returns the error that reading all lines finds first, for damage that was found
// where not all are read.
func named(ctx context.Context, c cut, err error) error {
	if corrupt := new(CorruptError); !errors.As(err, &corrupt) {
		return err
	}
	if _, first := survey(ctx, c.from, c.files, false); first != nil {
		return first
	}
	return err
}

// read reads to the last entry of a changeset. Next says that the changeset before it was
// read too: then nothing is between them that could be damaged and is of no concern.
func (l *loader[E]) read(ctx context.Context, c changeset, next bool) error {
	if l.place.before(c.from) && !(next && l.place.segment == c.from.segment) {
		i, ok := l.find(c.from.segment)
		offset := int64(0)
		if ok {
			offset = int64(c.from.offset)
		}
		if err := l.begin(i, offset, 0); err != nil {
			return err
		}
	}
	for l.place.before(c.to) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if l.lines.at == len(l.lines.files) {
			return nil
		}
		line, rest, err := l.lines.next()
		switch {
		case err == io.EOF && len(rest) == 0:
			err = l.begin(l.lines.at+1, 0, l.number)
			if n := l.lines.at; n < len(l.lines.files) && l.lines.files[n-1].number+1 < l.lines.files[n].number {
				l.number = 0 // behind a gap
			}
		case err == io.EOF && l.lines.at+1 == len(l.lines.files): // perhaps a line without a newline
			line = new(checked)
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
	return slices.BinarySearchFunc(l.lines.files, number, func(s segment, n uint64) int { return int(s.number) - int(n) })
}

// begin goes on in segment i, behind the line with that number; 0 means any.
func (l *loader[E]) begin(i int, offset int64, number int) error {
	if l.number, l.place = number, (place{}); i < len(l.lines.files) {
		l.place = place{l.lines.files[i].number, uint64(offset)}
		if err := l.lines.open(i, offset, 0, digest{}); errors.Is(err, fs.ErrNotExist) {
			return l.corrupt("the segment is missing")
		} else if err != nil {
			return fmt.Errorf("journal: reading line %d: %w", l.number+1, err)
		}
	}
	l.lines.at = i
	return nil
}

// take takes entries of a line that are wanted.
func (l *loader[E]) take(c *checked) (err error) {
	why := c.why
	switch {
	case why != "":
	case (c.op == opJournal) != (l.place.offset == 0) || c.op == opJournal && c.segment != l.place.segment:
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
	if i, ok := l.index[c.id]; ok && c.op == opAppend && !l.place.before(l.list[i].from) && l.place.before(l.list[i].to) {
		if n := len(l.entries[i]); n == 0 {
			l.entries[i] = make([]cowchangeset.Entry[E], 0, min(l.list[i].count, 1<<20))
		} else if l.entries[i][n-1].Seq >= c.first {
			return l.corrupt(outOfOrder(c.first, l.entries[i][n-1].Seq))
		}
		l.entries[i], err = l.decoder.appendAll(l.entries[i], l.path, l.number, &c.line)
	}
	l.place.offset += uint64(c.length())
	return err
}

func (l *loader[E]) corrupt(why string) error {
	return &CorruptError{File: fileName(l.place.segment), Line: l.number + 1, Offset: int64(l.place.offset), Reason: why}
}

// check returns an error if changeset i has other entries than the journal says, unless a
// segment is missing: then Open has seen a gap that says so.
func (l *loader[E]) check(i int) error {
	c, n := l.list[i], len(l.entries[i])
	first, _ := l.find(c.from.segment)
	next, _ := l.find(c.to.segment + 1)
	if uint64(n) == c.count && l.entries[i][n-1].Seq == c.last || uint64(next-first) <= c.to.segment-c.from.segment {
		return nil
	}
	return l.corrupt(fmt.Sprintf("changeset %q has %d entries here, and not %d", c.id, n, c.count))
}

// saved returns a changeset, and forgets its entries.
func (l *loader[E]) saved(i int) cowchangeset.Saved[E] {
	c := l.list[i]
	saved := cowchangeset.Saved[E]{
		Header:  cowchangeset.Header{ID: c.id, Ordinal: c.ordinal, Previous: c.previous},
		Entries: l.entries[i],
		Sealed:  c.sealed,
		Aborted: c.aborted,
		Reason:  c.reason,
		Applied: c.applied,
	}
	if _, wanted := l.index[c.id]; !wanted {
		saved.Manifest = cowchangeset.Manifest{Len: int(c.count), Last: c.last}
	}
	l.entries[i] = nil
	return saved
}
