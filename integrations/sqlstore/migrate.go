package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// Migrate makes the tables, or brings those of an earlier version of this package up to
// date. It may be called at every start, and in several processes at once. Tables of a
// later version give ErrNotMigrated. Migrate panics if ctx is nil.
//
// Migrate is blocking: it waits for the database. It takes effect when its transaction
// commits.
func (s *Store[E]) Migrate(ctx context.Context) error {
	needContext(ctx, "Migrate")
	if err := s.migrate(ctx); err != nil {
		return failed(ctx, "Migrate", err)
	}
	return nil
}

// migrate has a connection of its own for a transaction that database/sql does not
// offer: one that has SQLite's write lock from the beginning.
func (s *tables) migrate(ctx context.Context) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	begin, lock := "BEGIN IMMEDIATE", ""
	if s.dialect == PostgreSQL {
		// Two CREATE TABLE IF NOT EXISTS at a time may fail. The lock ends with the transaction.
		begin, lock = "BEGIN", `SELECT pg_advisory_xact_lock(hashtext('`+s.prefix+`store'))`
	}
	committed := false
	defer func() {
		if committed {
			return
		}
		if _, failed := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); failed != nil {
			conn.Raw(func(any) error { return driver.ErrBadConn }) // it is not used again
		}
	}()
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return s.inDialect(err) // and it may have begun nevertheless
	}
	if lock != "" {
		if _, err := conn.ExecContext(ctx, lock); err != nil {
			return s.inDialect(err)
		}
	}
	if err := s.migrated(ctx, conn); !errors.Is(err, ErrNotMigrated) || errors.Is(err, errVersion) {
		return err
	}
	for _, text := range s.texts.schema {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	if err := s.migrated(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return err
	}
	committed = true
	return nil
}

// inDialect returns the error of a statement that fails in a database of another dialect.
func (s *tables) inDialect(err error) error {
	return fmt.Errorf("the first statement in Options.Dialect, which is %v: %w", s.dialect, err)
}

// errVersion: it is not for this version of the package to change the tables.
var errVersion = errors.New("made by another version")

// querier is a *sql.DB, a *sql.Conn or a *sql.Tx.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// migrated returns an ErrNotMigrated that says what is missing, or nil.
func (s *tables) migrated(ctx context.Context, q querier) error {
	for _, name := range []string{"store", "changesets", "entries"} {
		var there bool
		if err := q.QueryRowContext(ctx, s.texts.exists, s.prefix+name).Scan(&there); err != nil {
			return s.inDialect(err)
		}
		if !there {
			return fmt.Errorf("%w: there is no table %s%s", ErrNotMigrated, s.prefix, name)
		}
	}
	var version int64
	switch err := q.QueryRowContext(ctx, s.texts.version).Scan(&version); {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %sstore has no row", ErrNotMigrated, s.prefix)
	case err != nil:
		return err
	case version != schemaVersion:
		return fmt.Errorf("%w: %w: version %d of the schema, and this package has version %d", ErrNotMigrated, errVersion, version, schemaVersion)
	}
	return nil
}
