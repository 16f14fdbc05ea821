package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Load yields the changesets in the order of their ordinals. If it fails, it yields the
// error and ends: a *DecodeError for a value that the codec cannot decode, an
// ErrCorrupt for rows that do not fit together, or the error of the database. Load
// needs no claim. It holds no connection while the loop's body runs, and the entries of
// one changeset in memory. It panics if ctx is nil.
//
// Load is blocking: it waits for the database. It takes effect for each changeset when
// that is read: what it yields is of one moment only if nobody writes meanwhile, as
// after a Claim.
func (s *Store[E]) Load(ctx context.Context) iter.Seq2[cowchangeset.Saved[E], error] {
	needContext(ctx, "Load")
	return func(yield func(cowchangeset.Saved[E], error) bool) {
		after := int64(0)
		for {
			heads, err := s.heads(ctx, after)
			if err != nil {
				yield(cowchangeset.Saved[E]{}, failed(ctx, "Load", err))
				return
			}
			if len(heads) == 0 {
				return
			}
			for _, h := range heads {
				after = h.ordinal
				saved, err := s.saved(ctx, h)
				if errors.Is(err, errPruned) {
					continue
				}
				if err != nil {
					err = failed(ctx, "Load", err)
				}
				if !yield(saved, err) || err != nil {
					return
				}
			}
		}
	}
}

// errPruned: the changeset is no longer there.
var errPruned = errors.New("sqlstore: pruned meanwhile")

// head is a changeset without its entries.
type head struct {
	changeset
	id string
}

// heads returns the next changesets, or none.
func (s *tables) heads(ctx context.Context, after int64) (heads []head, err error) {
	rows, err := s.db.QueryContext(ctx, s.texts.heads, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var h head
		if err := rows.Scan(&h.ordinal, &h.id, &h.previous, &h.entries, &h.last, &h.sealed, &h.aborted, &h.reason, &h.applied); err != nil {
			return nil, err
		}
		if err := h.check(h.id); err != nil {
			return nil, err
		}
		heads = append(heads, h)
	}
	return heads, rows.Err()
}

// saved returns a changeset with the entries that it had when its head was read.
func (s *Store[E]) saved(ctx context.Context, h head) (cowchangeset.Saved[E], error) {
	saved := cowchangeset.Saved[E]{
		Header:  cowchangeset.Header{ID: h.id, Ordinal: uint64(h.ordinal), Previous: h.previous},
		Sealed:  h.sealed,
		Aborted: h.aborted,
		Reason:  h.reason,
		Applied: h.appliedTo(),
	}
	if h.entries == 0 {
		return saved, nil
	}
	err := s.entries(ctx, h, func(seq int64, value []byte) error {
		e, err := s.values.Decode(h.id, uint64(seq), value)
		if err != nil {
			return err
		}
		saved.Entries = append(saved.Entries, cowchangeset.Entry[E]{Seq: uint64(seq), Value: e})
		return nil
	})
	if err != nil {
		saved.Entries = nil
		return saved, err
	}
	n := len(saved.Entries)
	if int64(n) == h.entries && saved.Entries[n-1].Seq == uint64(h.last) {
		return saved, nil
	}
	oldest, err := s.oldestOrdinal(ctx, s.db)
	if err == nil && oldest > h.ordinal {
		err = errPruned
	} else if err == nil {
		err = fmt.Errorf("%w: changeset %q should have %d entries up to seq %d, and has %d", ErrCorrupt, h.id, h.entries, h.last, n)
	}
	saved.Entries = nil
	return saved, err
}

// entries calls fn with the entries of a changeset, up to its last one.
func (s *tables) entries(ctx context.Context, h head, fn func(seq int64, value []byte) error) error {
	rows, err := s.db.QueryContext(ctx, s.texts.entries, h.ordinal, h.last)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			seq   int64
			value sql.RawBytes
		)
		if err := rows.Scan(&seq, &value); err != nil {
			return err
		}
		if seq < 0 {
			return fmt.Errorf("%w: changeset %q has an entry %d", ErrCorrupt, h.id, seq)
		}
		if err := fn(seq, value); err != nil {
			return err
		}
	}
	return rows.Err()
}
