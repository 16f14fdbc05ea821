package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// transact runs fn in a transaction that keeps the claim. Nothing is left of it, and
// the connection is free again, if fn fails, panics or calls runtime.Goexit.
func (s *tables) transact(ctx context.Context, method string, fn func(tx *sql.Tx) error) error {
	err := s.fenced(ctx, fn)
	if err != nil {
		return failed(ctx, method, err)
	}
	return nil
}

// fenced is transact without words about errors.
func (s *tables) fenced(ctx context.Context, fn func(tx *sql.Tx) error) error {
	mine := s.epoch.Load()
	if mine == 0 {
		return ErrUnclaimed
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing after a commit
	var (
		epoch  int64
		holder string
	)
	switch err := tx.QueryRowContext(ctx, s.texts.guard).Scan(&epoch, &holder); {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %sstore has no row", ErrNotMigrated, s.prefix)
	case err != nil:
		return err
	case epoch != mine:
		return fmt.Errorf("%w: %q has epoch %d, and this store has %d", ErrFenced, holder, epoch, mine)
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}
