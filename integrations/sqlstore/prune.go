package sqlstore

import (
	"context"
	"database/sql"
	"errors"
)

// Prune deletes changesets with an ordinal below before, from the oldest on, as far as
// they are sealed. The latest changeset stays. A tracker's Prune calls it when it has
// forgotten the same changesets. Prune panics if ctx is nil.
//
// Seal, Abort and Applied of a pruned changeset succeed and do nothing, so that a
// caller that missed their success can repeat them. So do not give its ID to another
// changeset while a caller may still do that.
//
// Prune is blocking: it waits for the database. It takes effect in transactions of up
// to 64 changesets, the oldest first, when each commits.
func (s *Store[E]) Prune(ctx context.Context, before uint64) error {
	needContext(ctx, "Prune")
	for more := true; more; {
		err := s.transact(ctx, "Prune", func(tx *sql.Tx) (err error) {
			more, err = s.prune(ctx, tx, int64(min(before, maxOrdinal)))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pruneStep is how many changesets one transaction deletes.
const pruneStep = 64

// prune deletes the next changesets, and reports whether there may be more.
func (s *tables) prune(ctx context.Context, tx *sql.Tx, before int64) (more bool, err error) {
	oldest, err := s.oldestOrdinal(ctx, tx)
	if err != nil || oldest == 0 || oldest >= before {
		return false, err
	}
	latest, _, err := s.latest(ctx, tx)
	if err != nil {
		return false, err
	}
	before = min(before, latest)
	var end int64 // the latest one, or before
	if err := tx.QueryRowContext(ctx, s.texts.unsealed, before).Scan(&end); err != nil {
		return false, err
	}
	if more = end-oldest > pruneStep; more {
		end = oldest + pruneStep
	}
	if end <= oldest {
		return false, nil
	}
	if _, err := tx.ExecContext(ctx, s.texts.pruneEntries, end); err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, s.texts.pruneChangesets, end)
	return more, err
}

// oldestOrdinal returns the ordinal of the first changeset, or 0 if there is none.
func (s *tables) oldestOrdinal(ctx context.Context, q querier) (ordinal int64, err error) {
	err = q.QueryRowContext(ctx, s.texts.oldest).Scan(&ordinal)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return ordinal, err
}

// pruned reports whether changesets were deleted.
func (s *tables) pruned(ctx context.Context, tx *sql.Tx) (bool, error) {
	oldest, err := s.oldestOrdinal(ctx, tx)
	return oldest > 1, err
}
