package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

var (
	// ErrKeyReused: the key belongs to another changeset.
	ErrKeyReused = errors.New("the idempotency key belongs to another changeset")
	// ErrOtherKey: the changeset was written under another key.
	ErrOtherKey = errors.New("the changeset was applied under another idempotency key")
	// ErrUnknown: the database has neither the key nor the changeset.
	ErrUnknown = errors.New("the database does not have the changeset")
)

// Written is what a database has of a changeset.
type Written struct {
	Changes  int
	Replayed bool // it was there before
}

// Write adds the changes in one transaction, unless the database has them already under
// this key. Of calls that race for a key or a changeset one writes.
func (e *Engine) Write(ctx context.Context, key, changeset string, changes []api.Change) (Written, error) {
	ctx = e.detach(ctx)
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return Written{}, fmt.Errorf("write to %s: %w", e.URL, err)
	}
	defer tx.Rollback() // does nothing after Commit
	if w, err := find(ctx, tx, key, changeset); !errors.Is(err, ErrUnknown) {
		return w, err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO applied (key, changeset, changes) VALUES (?, ?, ?)", key, changeset, len(changes))
	if err != nil {
		return Written{}, fmt.Errorf("write to %s: %w", e.URL, err)
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO changes
		(changeset, position, id, plan, run, strategy, action, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return Written{}, fmt.Errorf("write to %s: %w", e.URL, err)
	}
	defer insert.Close()
	for i, c := range changes {
		if _, err := insert.ExecContext(ctx, changeset, i, c.ID, c.Plan, c.Run, c.Strategy, c.Action, c.Value); err != nil {
			return Written{}, fmt.Errorf("write to %s: %w", e.URL, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return Written{}, fmt.Errorf("write to %s: %w", e.URL, err)
	}
	return Written{Changes: len(changes)}, nil
}

// Find returns what the database has of a changeset that was written under the key, or
// ErrUnknown, ErrOtherKey, ErrKeyReused.
func (e *Engine) Find(ctx context.Context, key, changeset string) (Written, error) {
	return find(e.detach(ctx), e.db, key, changeset)
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func find(ctx context.Context, q querier, key, changeset string) (Written, error) {
	w := Written{Replayed: true}
	var k, c string
	// At most two rows match; that of the changeset comes first.
	err := q.QueryRowContext(ctx, `SELECT key, changeset, changes FROM applied
		WHERE key = ?1 OR changeset = ?2 ORDER BY changeset = ?2 DESC LIMIT 1`, key, changeset).Scan(&k, &c, &w.Changes)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Written{}, ErrUnknown
	case err != nil:
		return Written{}, fmt.Errorf("look for a changeset: %w", err)
	case c != changeset:
		return Written{}, ErrKeyReused
	case k != key:
		return Written{}, ErrOtherKey
	}
	return w, nil
}

// IDs returns the IDs of the changes that the database has of a changeset, in order.
func (e *Engine) IDs(ctx context.Context, changeset string) ([]string, error) {
	rows, err := e.db.QueryContext(e.detach(ctx), "SELECT id FROM changes WHERE changeset = ? ORDER BY position", changeset)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
