package journal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Load yields the changesets that the journal has, and that were not pruned, when the
// loop begins, in the order of their ordinals. If segments were lost, it begins behind
// the last of them; see Repair. If it fails, it yields the error and
// ends: a *DecodeError for a value that cannot be decoded, an error for a file that has
// changed under the journal, or the cause of ctx. It reads the files once. The entries
// of changesets that were open at the same time are in memory at the same time. Calls
// of other methods go on meanwhile, also from within the loop. Load panics if ctx is
// nil.
//
// Load is blocking: it waits for the files. It takes effect when the loop begins.
func (j *Journal[E]) Load(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	needContext(ctx, "Load")
	return loop(func(yield func(cowchangeset.Saved[E]) bool) error {
		cut, err := j.log.cut()
		if err != nil {
			return err
		}
		defer j.log.loaded()
		closed := false
		err = loadAll(ctx, cut, func(s cowchangeset.Saved[E]) bool {
			if !yield(s) {
				return false
			}
			j.log.mu.Lock()
			closed = !j.log.open
			j.log.mu.Unlock()
			return !closed
		})
		if closed {
			err = ErrClosed // others may change the files now
		}
		return err
	})
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
	path     string
	from     source
	segments []segment
	hash     digest // of the last line
	list     []changeset
	previous string // the ID of the changeset before the first one
	upcast   func(Value) (json.RawMessage, error)
}

// cut returns the present contents. Until loaded is called, no segment is dropped.
func (g *log) cut() (cut, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return cut{}, err
	}
	g.loading++
	return cutOf(g.path, g.folder, g.options, g.state, g.state.kept(), g.segments, g.hash), nil // LP(Load)
}

func (g *log) loaded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loading--
}

func cutOf(path string, f source, o Options, s *state, kept []*changeset, files []segment, hash digest) cut {
	c := cut{path: path, from: f, segments: slices.Clone(files), hash: hash, list: make([]changeset, len(kept)), upcast: o.Upcast}
	for i, k := range kept {
		c.list[i] = *k
	}
	if len(kept) > 0 {
		c.previous = s.id(kept[0].ordinal - 1)
	}
	return c
}

// A loader collects the entries of changesets.
type loader[E any] struct {
	cut
	index   map[string]int // into list and entries, by ID
	entries [][]cowchangeset.Entry[E]
	started []bool // by the lines so far; earlier lines are of a pruned changeset with the same ID
	sealed  []bool // by the lines so far
	yielded int
	decoder decoder[E]
}

// loadAll reads the segments of a cut. It yields changesets as soon as they and those
// before them are complete, and the others at the end.
func loadAll[E any](ctx context.Context, c cut, yield func(cowchangeset.Saved[E]) bool) error {
	l := &loader[E]{
		cut:     c,
		index:   make(map[string]int, len(c.list)),
		entries: make([][]cowchangeset.Entry[E], len(c.list)),
		started: make([]bool, len(c.list)),
		sealed:  make([]bool, len(c.list)),
		decoder: decoder[E]{upcast: c.upcast},
	}
	for i, s := range c.list {
		l.index[s.id] = i
	}
	s, end := scanFiles(l.from, l.segments)
	defer end()
	s.blocks.parses, s.blocks.parser.decodes = true, true
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := s.next()
		if err == io.EOF && s.hash == l.hash {
			break
		}
		if err == io.EOF {
			return s.corrupt("the journal ends here, and did not")
		}
		if err != nil {
			return err
		}
		i, ok := l.index[line.id]
		switch {
		case !ok: // it was pruned, or another changeset has taken its place
		case line.op == opStart:
			l.started[i] = line.ordinal == l.list[i].ordinal
		case !l.started[i]:
		case line.op == opAppend:
			if l.entries[i] == nil {
				l.entries[i] = make([]cowchangeset.Entry[E], 0, l.list[i].count)
			}
			if l.entries[i], err = l.decoder.appendAll(l.entries[i], l.path, s.lines, line); err != nil {
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

// next returns the next changeset in order, and forgets it.
func (l *loader[E]) next() cowchangeset.Saved[E] {
	i := l.yielded
	c := l.list[i]
	if i > 0 && l.list[i-1].ordinal+1 != c.ordinal {
		l.previous = c.previous // behind a gap
	}
	saved := cowchangeset.Saved[E]{
		Header:  cowchangeset.Header{ID: c.id, Ordinal: c.ordinal, Previous: l.previous},
		Entries: l.entries[i],
		Sealed:  c.sealed,
		Aborted: c.aborted,
		Reason:  c.reason,
		Applied: c.applied,
	}
	l.previous = c.id
	l.entries[i] = nil
	l.yielded++
	return saved
}
