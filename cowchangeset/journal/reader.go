package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Reader reads a journal without locking it, also while another process, or a Journal
// in this one, writes, rotates and prunes it. It never writes. It has files open, at most
// 17, only while one of its methods runs, or a loop over a method's result: so it need not be
// closed. OpenReader makes Readers. All methods may be called concurrently.
//
// Lines that a Reader finds may not be synced yet: a crash of the machine can take them
// back, and so can a write that fails. See ErrRewound.
//
// A journal that is damaged gives the *CorruptError that Open returns, and a value that
// cannot be decoded a *DecodeError.
type Reader[E any] struct {
	path    string
	find    func() (lister, error)
	options Options
}

// OpenReader returns a Reader of the journal at path, which must exist. It uses only the
// options Upcast, Identity and PollInterval. It refuses a type E whose values cannot be
// read back, as Open does.
func OpenReader[E any](path string, o Options) (*Reader[E], error) {
	full, err := absolute(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return readerOf[E](path, o, func() (lister, error) { return find(full) })
}

func readerOf[E any](path string, o Options, find func() (lister, error)) (*Reader[E], error) {
	if _, err := valuesOf[E](o); err != nil {
		return nil, err
	}
	r := &Reader[E]{path: path, find: find, options: o}
	v, err := r.look(0)
	if err != nil {
		return nil, err
	}
	v.close()
	return r, nil
}

// look is look where the journal is now.
func (r *Reader[E]) look(since uint64) (*view, error) {
	from, err := r.find()
	if err != nil {
		return nil, err
	}
	v, err := look(from, since)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (journal at %s)", err, r.path)
	}
	return v, err
}

// Changesets yields the changesets that the journal has, and that were not pruned, when
// the loop begins, in the order of their ordinals and with their entries. If segments were
// lost, ordinals may be missing, and entries: see Repair. If it fails, it yields the error
// and ends, as Journal.Load does; with ErrDropped if a prune overtakes the loop. It first
// reads the last segment and the headers of all, and then each changeset before it yields
// that. Changesets panics if ctx is nil.
//
// Changesets is blocking: it waits for the files. It takes effect when the loop begins.
func (r *Reader[E]) Changesets(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	needContext(ctx, "Changesets")
	return loop(func(yield func(cowchangeset.Saved[E]) bool) error { return r.load(ctx, nil, yield) })
}

// Changeset returns the changeset with an ID, or ErrNotFound. It reads the last segment,
// the headers of all, and the changeset. It panics if ctx is nil.
//
// Changeset is blocking: it waits for the files. It takes effect at its beginning.
func (r *Reader[E]) Changeset(ctx context.Context, id string) (cowchangeset.Saved[E], error) {
	needContext(ctx, "Changeset")
	return r.one(ctx, strconv.Quote(id), func(c *changeset) bool { return c.id == id })
}

// ChangesetAt returns the changeset with an ordinal, or ErrNotFound. It reads what
// Changeset does. It panics if ctx is nil.
//
// ChangesetAt is blocking: it waits for the files. It takes effect at its beginning.
func (r *Reader[E]) ChangesetAt(ctx context.Context, ordinal uint64) (cowchangeset.Saved[E], error) {
	needContext(ctx, "ChangesetAt")
	return r.one(ctx, fmt.Sprintf("ordinal %d", ordinal), func(c *changeset) bool { return c.ordinal == ordinal })
}

// one returns the changeset that is wanted, or an error that says which one is not there.
func (r *Reader[E]) one(ctx context.Context, which string, wanted func(*changeset) bool) (found cowchangeset.Saved[E], err error) {
	err = r.load(ctx, wanted, func(s cowchangeset.Saved[E]) bool {
		found = s
		return false
	})
	switch err {
	case nil:
		return found, fmt.Errorf("%w: %s", ErrNotFound, which)
	case errLeft:
		return found, nil
	}
	return found, err
}

// load yields the changesets that are wanted, or all if wanted is nil.
//
// The remains of a failed write, which its writer takes back between two looks, do not
// fit together. So damage counts if a second look finds the same.
func (r *Reader[E]) load(ctx context.Context, wanted func(*changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	begun := false
	var was CorruptError
	for {
		err := r.pass(ctx, wanted, func(s cowchangeset.Saved[E]) bool {
			begun = true
			return yield(s)
		})
		var corrupt *CorruptError
		switch {
		case errors.Is(err, errVanished) && !begun:
			continue // a writer's progress
		case !errors.As(err, &corrupt) || *corrupt == was:
			return err
		case begun:
			v, err := r.look(0)
			if err != nil {
				return err
			}
			defer v.close()
			if _, err := survey(ctx, v, v.files, false); err != nil {
				return err
			}
			return ErrRewound
		}
		was = *corrupt
	}
}

// pass yields the changesets that are wanted, as far as it gets.
func (r *Reader[E]) pass(ctx context.Context, wanted func(*changeset) bool, yield func(cowchangeset.Saved[E]) bool) error {
	v, err := r.look(0) // LP(Changesets, Changeset, ChangesetAt): when the files are open
	if err != nil {
		return err
	}
	defer v.close()
	s, err := survey(ctx, v, v.files, true)
	if err == nil {
		err = r.options.identify(s.state.journal)
	}
	if err != nil {
		return err
	}
	last := &s.files[len(s.files)-1]
	if last.size = s.size; s.fixed { // but for its newline
		last.size--
	}
	list := s.state.list
	if wanted != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(c *changeset) bool { return !wanted(c) })
	}
	c := cutOf(r.path, v, r.options, s.state, list, s.files)
	return loadAll(ctx, c, func(changeset) bool { return true }, yield)
}

// survey reads segments. If it skims and finds damage, it reads all to name the first.
func survey(ctx context.Context, from source, files []segment, skims bool) (*scanner, error) {
	s := scan(from, files)
	s.skims = skims
	err := s.all(func(*scanner) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
	s.close()
	if corrupt := new(CorruptError); skims && errors.As(err, &corrupt) {
		if all, first := survey(ctx, from, files, false); first != nil {
			return all, first
		}
	}
	return s, err
}

// identify returns an error if a journal is not the one that Identity asks for.
func (o Options) identify(journal string) error {
	if o.Identity != "" && journal != o.Identity {
		return fmt.Errorf("journal: it is %q, and not %q, as Options.Identity says", journal, o.Identity)
	}
	return nil
}
