package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// recorded returns a store, a tracker with one changeset of two entries, on tables with
// a ledger, and a function that applies the changeset.
func recorded(t *testing.T, d database) (*sqlstore.Store[string], *cowchangeset.Tracker[string], *cowchangeset.Changeset[string], func(fn applies) error) {
	s := d.store(t)
	d.exec(t, "CREATE TABLE #ledger (ordinal BIGINT NOT NULL, entries BIGINT NOT NULL)")
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{Store: s})
	c, err := tracker.Start(background)
	require.NoError(t, err)
	_, err = tracker.RecordBatch([]string{"x", "y"})
	require.NoError(t, err)
	return s, tracker, c, func(fn applies) error { return s.ApplyTx(background, c, fn) }
}

type applies = func(context.Context, *sql.Tx, cowchangeset.Final[string]) error

// What a function leaves when it fails in any way is undone, and the changeset can be
// applied later.
func TestApplyTxFails(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s, _, c, apply := recorded(t, d)
		work := enter(d.prefix, 1)
		errOurs := errors.New("ours")
		require.Equal(t, errOurs, apply(func(ctx context.Context, tx *sql.Tx, f cowchangeset.Final[string]) error {
			require.NoError(t, work(ctx, tx, f))
			return errOurs
		}))
		require.PanicsWithValue(t, "ours", func() {
			apply(func(ctx context.Context, tx *sql.Tx, f cowchangeset.Final[string]) error {
				require.NoError(t, work(ctx, tx, f))
				panic("ours")
			})
		})
		exited := make(chan bool)
		go func() {
			defer close(exited)
			apply(func(ctx context.Context, tx *sql.Tx, f cowchangeset.Final[string]) error {
				work(ctx, tx, f)
				runtime.Goexit()
				return nil
			})
		}()
		<-exited
		err := apply(func(ctx context.Context, tx *sql.Tx, f cowchangeset.Final[string]) error {
			require.NoError(t, work(ctx, tx, f))
			return tx.Rollback() // which it must not
		})
		require.ErrorIs(t, err, sql.ErrTxDone)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Equal(t, context.Canceled, s.ApplyTx(ctx, c, work))

		require.Zero(t, c.Applied())
		require.Zero(t, d.number(t, "SELECT applied FROM #changesets"))
		require.Zero(t, d.number(t, "SELECT COUNT(*) FROM #ledger"))
		require.NoError(t, apply(work))
		require.Equal(t, cowchangeset.AllApplied, c.Applied())
		require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #ledger WHERE entries = 2"))
		require.ErrorIs(t, apply(work), cowchangeset.ErrApplied)
	})
}

// A failed ApplyTx leaves nothing that an Apply without a transaction would mistake for
// its mark.
func TestApplyAfterApplyTx(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		_, _, c, apply := recorded(t, d)
		errOurs := errors.New("ours")
		require.Equal(t, errOurs, apply(func(context.Context, *sql.Tx, cowchangeset.Final[string]) error { return errOurs }))
		require.NoError(t, c.Apply(background, func(context.Context, cowchangeset.Final[string]) error { return nil }))
		require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #changesets WHERE applied = 9223372036854775807"))
	})
}

// A call of Applied that was on its way when ApplyTx committed, as of an ApplyEach
// before it, leaves the mark to the call that repeats it.
func TestMarkOutlivesLateCalls(t *testing.T) {
	d := memory(t)
	s := d.claimed(t)
	require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
	require.NoError(t, s.Seal(background, "a", manifest{}))
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{NewID: func(context.Context) (string, error) { return "a", nil }})
	a, err := tracker.Start(background)
	require.NoError(t, err)
	require.NoError(t, s.ApplyTx(background, a, func(context.Context, *sql.Tx, cowchangeset.Final[string]) error { return nil }))
	require.NoError(t, s.Applied(background, "a", 1))
	d.claimed(t) // the other process finds the mark
	require.NoError(t, s.Applied(background, "a", cowchangeset.AllApplied))
	require.ErrorIs(t, s.Applied(background, "a", cowchangeset.AllApplied), sqlstore.ErrFenced)
}

// A function that commits by itself commits the mark too.
func TestApplyTxCommits(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		_, _, _, apply := recorded(t, d)
		work := enter(d.prefix, 1)
		err := apply(func(ctx context.Context, tx *sql.Tx, f cowchangeset.Final[string]) error {
			require.NoError(t, work(ctx, tx, f))
			return tx.Commit()
		})
		require.ErrorIs(t, err, sql.ErrTxDone)
		require.NoError(t, apply(work))
		require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #ledger"))
	})
}

// ApplyTx refuses a changeset that was aborted, one that the store does not have, and
// what is nil.
func TestApplyTxRefuses(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		_, _, c, apply := recorded(t, d)
		require.NoError(t, c.Abort(background, errors.New("because")))
		require.ErrorIs(t, apply(enter(d.prefix, 1)), cowchangeset.ErrAborted)

		s := d.claimed(t)
		var stranger cowchangeset.Tracker[string]
		other, err := stranger.Start(background)
		require.NoError(t, err)
		err = s.ApplyTx(background, other, enter(d.prefix, 1))
		require.ErrorContains(t, err, "it was not started, or was pruned")
		require.Zero(t, d.number(t, "SELECT COUNT(*) FROM #ledger"))

		var none context.Context
		require.PanicsWithValue(t, "sqlstore: Store.ApplyTx called with a nil function", func() { s.ApplyTx(background, c, nil) })
		require.PanicsWithValue(t, "sqlstore: Store.ApplyTx called with a nil changeset", func() { s.ApplyTx(background, nil, enter(d.prefix, 1)) })
		require.PanicsWithValue(t, "sqlstore: Store.ApplyTx called with a nil context", func() { s.ApplyTx(none, c, enter(d.prefix, 1)) })
	})
}

// In PostgreSQL, an Apply that takes its time delays no Start and no Record.
func TestApplyTxDelaysNoRecord(t *testing.T) {
	_, tracker, _, apply := recorded(t, postgres(t))
	require.NoError(t, apply(func(context.Context, *sql.Tx, cowchangeset.Final[string]) error {
		_, err := tracker.Start(background)
		require.NoError(t, err)
		_, err = tracker.Record("meanwhile")
		return err
	}))
}
