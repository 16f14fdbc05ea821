package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// ErrRewound: lines that a Reader has read are no longer in the journal, since a
// failed write was taken back, or the journal was repaired. Begin again after a line
// that is known to be there.
var ErrRewound = errors.New("journal: lines that were read were taken back")

// Reader reads a journal without locking it, also while another process, or a Journal
// in this one, writes, rotates and prunes it. It never writes. It has files open, at most
// 18, only while one of its methods runs, or a loop over a method's result: so it need not be
// closed. Open makes Readers. All methods may be called concurrently.
//
// Lines that a Reader finds may not be synced yet: a crash of the machine can take them
// back, and so can a write that fails. See ErrRewound.
//
// A journal that is damaged gives the *CorruptError that Open returns, and a value that
// cannot be decoded a *DecodeError.
type Reader[E any] struct {
	path     string // as it was given
	absolute string
	options  Options
}

// Open returns a Reader of the journal at path. If there is none, the error matches
// fs.ErrNotExist. It refuses a type E
// whose values cannot be read back, as journal.Open does.
func Open[E any](path string, o Options) (*Reader[E], error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if _, err := chain.ValuesOf[E](0); err != nil {
		return nil, err
	}
	absolute, err := folder.Absolute(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	r := &Reader[E]{path: path, absolute: absolute, options: o}
	v, err := r.look(0)
	if err != nil {
		return nil, err
	}
	v.Close()
	return r, nil
}

// look returns a view of the segments with a number of since or more, where the journal is
// now.
func (r *Reader[E]) look(since uint64) (*chain.View, error) {
	from := chain.Lister(folder.Gzip{Folder: r.options.Folder})
	if r.options.Folder == nil {
		var err error
		if from, err = chain.Find(r.absolute); err != nil {
			return nil, fmt.Errorf("%w (journal at %s)", err, r.path)
		}
	}
	v, err := chain.OpenView(from, since)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (journal at %s)", err, r.path)
	}
	return v, err
}

// Changesets yields the changesets that the journal has, and that were not pruned, when
// the loop begins, in the order of their ordinals and with their entries. If segments were
// lost, ordinals may be missing, and entries: see package repair. If it fails, it yields the error
// and ends, as Journal.Load does; with ErrDropped if a prune overtakes the loop. It first
// reads the last segment and the headers of all, and then each changeset before it yields
// that. Changesets panics if ctx is nil.
//
// Changesets is blocking: it waits for the files. It takes effect when the loop begins.
func (r *Reader[E]) Changesets(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	needContext(ctx, "Changesets")
	return chain.Loop(func(yield func(cowchangeset.Saved[E]) bool) error { return r.load(ctx, nil, yield) })
}

// Changeset returns the changeset with an ID, or ErrNotFound. It reads the last segment,
// the headers of all, and the changeset. It panics if ctx is nil.
//
// Changeset is blocking: it waits for the files. It takes effect at its beginning.
func (r *Reader[E]) Changeset(ctx context.Context, id string) (cowchangeset.Saved[E], error) {
	needContext(ctx, "Changeset")
	var found cowchangeset.Saved[E]
	err := r.load(ctx, func(c *chain.Changeset) bool { return c.ID == id }, func(s cowchangeset.Saved[E]) bool {
		found = s
		return false
	})
	switch err {
	case nil:
		err = fmt.Errorf("%w: %q", journal.ErrNotFound, id)
	case chain.ErrLeft:
		err = nil
	}
	return found, err
}

// load yields the changesets that are wanted, or all if wanted is nil.
//
// The remains of a failed write, which its writer takes back between two looks, do not
// fit together. So damage counts if a second look finds the same.
func (r *Reader[E]) load(ctx context.Context, wanted func(*chain.Changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	begun := false
	var was journal.CorruptError
	for {
		err := r.pass(ctx, wanted, func(s cowchangeset.Saved[E]) bool {
			begun = true
			return yield(s)
		})
		var corrupt *journal.CorruptError
		switch {
		case errors.Is(err, chain.ErrVanished) && !begun:
			continue // a writer's progress
		case !errors.As(err, &corrupt) || *corrupt == was:
			return err
		case begun:
			v, err := r.look(0)
			if err != nil {
				return err
			}
			defer v.Close()
			if _, err := chain.Survey(ctx, v, v.Files, false); err != nil {
				return err
			}
			return ErrRewound
		}
		was = *corrupt
	}
}

// pass yields the changesets that are wanted, as far as it gets.
func (r *Reader[E]) pass(ctx context.Context, wanted func(*chain.Changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	v, err := r.look(0) // LP(Changesets, Changeset): when the files are open
	if err != nil {
		return err
	}
	defer v.Close()
	s, err := chain.Survey(ctx, v, v.Files, true)
	if err == nil {
		err = chain.Identify(s.State.Journal, r.options.Identity)
	}
	if err != nil {
		return err
	}
	last := &s.Files[len(s.Files)-1]
	if last.Size = s.Size; s.Unterminated { // but for its newline
		last.Size--
	}
	list := s.State.List
	if wanted != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(c *chain.Changeset) bool { return !wanted(c) })
	}
	c := chain.CutOf(r.path, v, r.options.Upcast, s.State, list, s.Files)
	return chain.Load(ctx, c, func(chain.Changeset) bool { return true }, yield)
}

// needContext panics if a method is called with a nil context.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("reader: " + method + " called with a nil context")
	}
}
