package sqlstore

import (
	"context"
	"database/sql"

	"github.com/latchfree/latchfree/cowchangeset"
)

// ApplyTx applies a changeset of the tracker that uses the store: it is
// cowchangeset.Changeset.Apply with a function that gets a transaction of the store's
// database. The transaction marks the changeset as applied. So what fn does in it takes
// effect exactly once, whatever fails and however often ApplyTx is called, also after
// Resume.
//
// If fn fails, by an error, a panic or runtime.Goexit, the transaction is rolled back,
// and ApplyTx may be called again. If the commit fails and has taken effect
// nevertheless, the next ApplyTx finds the mark and returns nil without calling fn. The
// function must not end the transaction. What it does outside is repeated with it.
//
// ApplyTx returns the errors of Changeset.Apply, that of fn, and ErrFenced, before fn
// runs, if another process has the store. That process cannot claim the store while fn
// runs. The transaction has the default isolation of the database: above READ COMMITTED it
// may fail to serialize, and can then be repeated. ApplyTx panics if ctx, c or fn is nil.
//
// A Record in fn that waits for the store needs a second connection. If there is none,
// it waits for fn, which waits for it, until Config.StoreTimeout: in SQLite, whose
// transaction has the only write lock, and where calls of ApplyTx have all connections of
// the pool (SetMaxOpenConns). There, record after ApplyTx, or with Config.Async. No
// error can say so at once: a call of the store cannot know whether it is fn that waits
// for it, or a Record of another goroutine, which only has to wait for the end of fn.
//
// ApplyTx is blocking: it waits for the database and for fn. It takes effect when its
// transaction commits.
func (s *Store[E]) ApplyTx(ctx context.Context, c *cowchangeset.Changeset[E], fn func(context.Context, *sql.Tx, cowchangeset.Final[E]) error) error {
	needContext(ctx, "ApplyTx")
	if c == nil {
		panic("sqlstore: Store.ApplyTx called with a nil changeset")
	}
	if fn == nil {
		panic("sqlstore: Store.ApplyTx called with a nil function")
	}
	return c.Apply(ctx, func(ctx context.Context, f cowchangeset.Final[E]) error {
		var theirs error
		err := s.fenced(ctx, nil, func(tx *sql.Tx) error { // in the isolation that the database's users expect
			fresh, err := s.markApplied(ctx, tx, c.ID())
			if err != nil || !fresh {
				return err
			}
			theirs = fn(ctx, tx, f)
			return theirs
		})
		if err == nil {
			s.marked.Store(c.ID(), nil)
			return nil
		}
		if theirs != nil {
			return theirs
		}
		return failed(ctx, "ApplyTx", err)
	})
}

// markApplied marks a changeset as applied, and reports whether it was not before. The
// mark comes before the work: a function that commits by itself commits both.
func (s *tables) markApplied(ctx context.Context, tx *sql.Tx, id string) (fresh bool, err error) {
	c, err := s.find(ctx, tx, id)
	switch {
	case err != nil:
		return false, err
	case c == nil:
		return false, conflict(id, "it was not started, or was pruned")
	case !c.sealed:
		return false, conflict(id, "it is not sealed")
	case c.aborted:
		return false, conflict(id, "it was aborted")
	case c.applied == wholeColumn:
		return false, nil
	}
	_, err = tx.ExecContext(ctx, s.texts.applied, int64(wholeColumn), c.ordinal)
	return true, err
}
