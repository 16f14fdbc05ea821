package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Load yields the changesets that the journal has when the loop begins, in the
// order of their ordinals, or an error, after which it ends: a value that cannot
// be decoded, a file that has changed under the journal, or the cause of ctx. It
// reads the file once. Entries of changesets that were open at the same time are
// in memory at the same time. Calls of other methods go on meanwhile, also from
// within the loop. Load panics if ctx is nil.
//
// Load is blocking: it waits for the file. It takes effect when the loop begins.
func (j *Journal[E]) Load(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	if ctx == nil {
		panic("journal: Load called with a nil context")
	}
	return func(yield func(cowchangeset.Saved[E], error) bool) {
		cut, err := j.log.cut()
		if err == nil {
			l := newLoader[E](cut)
			err = l.run(ctx, func(s cowchangeset.Saved[E]) bool { return yield(s, nil) })
		}
		if errors.Is(err, os.ErrClosed) {
			err = ErrClosed
		}
		if err != nil && err != errLeft {
			yield(cowchangeset.Saved[E]{}, err)
		}
	}
}

// errLeft: the loop was left.
var errLeft = errors.New("journal: loop left")

// A cut is what the journal has at one moment.
type cut struct {
	file io.Reader // up to there
	hash string    // of the last line
	list []changeset
}

func (g *log) cut() (cut, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return cut{}, err
	}
	c := cut{file: io.NewSectionReader(g.file, 0, g.size), hash: g.hash, list: make([]changeset, len(g.state.list))} // LP(Load)
	for i, s := range g.state.list {
		c.list[i] = *s
	}
	return c, nil
}

// A loader collects the entries of changesets.
type loader[E any] struct {
	cut
	index   map[string]int // into list and entries, by ID
	entries [][]cowchangeset.Entry[E]
	sealed  []bool // by the lines so far
	yielded int
}

func newLoader[E any](c cut) *loader[E] {
	l := &loader[E]{
		cut:     c,
		index:   make(map[string]int, len(c.list)),
		entries: make([][]cowchangeset.Entry[E], len(c.list)),
		sealed:  make([]bool, len(c.list)),
	}
	for i, s := range c.list {
		l.index[s.id] = i
	}
	return l
}

// run reads the file. It yields changesets as soon as they and those before them
// are complete, and the others at the end.
func (l *loader[E]) run(ctx context.Context, yield func(cowchangeset.Saved[E]) bool) error {
	s := newScanner(l.file)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := s.next()
		if err == io.EOF && s.hash == l.hash {
			break
		}
		if err == io.EOF {
			return s.corrupt("the file ends here, and did not")
		}
		if err != nil {
			return err
		}
		i, ok := l.index[line.id]
		switch {
		case !ok: // another changeset has taken its place
		case line.op == opAppend:
			if err := l.add(i, s.lines, line); err != nil {
				return err
			}
		case line.op == opSeal:
			l.sealed[i] = true
		}
		for l.yielded < len(l.list) && l.sealed[l.yielded] {
			if !yield(l.next()) {
				return errLeft
			}
		}
	}
	for l.yielded < len(l.list) {
		if !yield(l.next()) {
			return errLeft
		}
	}
	return nil
}

// add decodes the entries of a line. It runs user code.
func (l *loader[E]) add(i, number int, line *line) error {
	for _, e := range line.values {
		entry := cowchangeset.Entry[E]{Seq: e.Seq}
		if err := json.Unmarshal(e.Value, &entry.Value); err != nil {
			return fmt.Errorf("journal: line %d, entry %d of changeset %q: %w", number, e.Seq, line.id, err)
		}
		l.entries[i] = append(l.entries[i], entry)
	}
	return nil
}

// next returns the next changeset in order, and forgets it.
func (l *loader[E]) next() cowchangeset.Saved[E] {
	i := l.yielded
	c := l.list[i]
	saved := cowchangeset.Saved[E]{
		Header:  cowchangeset.Header{ID: c.id, Ordinal: c.ordinal},
		Entries: l.entries[i],
		Sealed:  c.sealed,
		Aborted: c.aborted,
		Reason:  c.reason,
		Applied: c.applied,
	}
	if i > 0 {
		saved.Previous = l.list[i-1].id
	}
	l.entries[i] = nil
	l.yielded++
	return saved
}
