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
	err := s.fenced(ctx, s.isolation(), fn)
	if err != nil {
		return failed(ctx, method, err)
	}
	return nil
}

// isolation returns the level that the store's own transactions need: above it, one
// that waits for another's row would fail. SQLite has one level.
func (s *tables) isolation() *sql.TxOptions {
	if s.dialect == PostgreSQL {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// fenced is transact with another isolation, and without words about errors.
func (s *tables) fenced(ctx context.Context, o *sql.TxOptions, fn func(tx *sql.Tx) error) error {
	mine := s.use()
	if mine == 0 {
		return ErrUnclaimed
	}
	tx, err := s.db.BeginTx(ctx, o)
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
