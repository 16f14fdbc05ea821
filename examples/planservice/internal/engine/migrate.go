package engine

import (
	"context"
	"fmt"
)

// migrations are run in this order, each once for a database.
var migrations = []string{
	`CREATE TABLE applied (
		key       TEXT PRIMARY KEY,
		changeset TEXT NOT NULL UNIQUE,
		changes   INTEGER NOT NULL
	) STRICT`,
	`CREATE TABLE changes (
		changeset TEXT NOT NULL REFERENCES applied (changeset) DEFERRABLE INITIALLY DEFERRED,
		position  INTEGER NOT NULL,
		id        TEXT NOT NULL,
		plan      TEXT NOT NULL,
		run       TEXT NOT NULL,
		strategy  TEXT NOT NULL,
		action    TEXT NOT NULL,
		value     TEXT NOT NULL,
		PRIMARY KEY (changeset, position)
	) STRICT`,
}

// Migrate brings the schema up to date. Callers that come together share the work, and
// later ones find it done. If it fails, the next caller tries again.
func (e *Engine) Migrate(ctx context.Context) error {
	_, err := e.migrated.GetOrCreateContext(ctx, len(migrations), func(ctx context.Context, to int) (struct{}, error) {
		return struct{}{}, e.migrate(e.detach(ctx), to)
	})
	return err
}

func (e *Engine) migrate(ctx context.Context, to int) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", e.URL, err)
	}
	defer tx.Rollback() // does nothing after Commit
	from := 0
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&from); err != nil {
		return fmt.Errorf("migrate %s: %w", e.URL, err)
	}
	if from > to {
		return fmt.Errorf("migrate %s: its schema has version %d, and this program knows %d", e.URL, from, to)
	}
	for i, statement := range migrations[from:to] {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("migrate %s to version %d: %w", e.URL, from+i+1, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", to)); err != nil {
		return fmt.Errorf("migrate %s: %w", e.URL, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("migrate %s: %w", e.URL, err)
	}
	return nil
}
