package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// eachShared runs a test on the databases that two processes can share.
func eachShared(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("SQLiteFile", func(t *testing.T) { test(t, file(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgres(t)) })
}

// other returns d with connections of its own, as another process has.
func (d database) other(t *testing.T) database {
	db, err := sql.Open(d.driver, d.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	d.DB = db
	return d
}

// The store that claims last has the tables. All calls of the other one that write fail,
// and change nothing.
func TestClaimFencesTheOther(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		old := d.claimed(t)
		require.NoError(t, old.Start(background, header{ID: "a", Ordinal: 1}))
		require.NoError(t, old.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))

		o := d.options()
		o.Holder = "host-2"
		young, err := sqlstore.New(d.DB, o)
		require.NoError(t, err)
		require.ErrorIs(t, young.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}), sqlstore.ErrUnclaimed)
		require.NoError(t, young.Claim(background))
		for name, call := range map[string]func() error{
			"Start":   func() error { return old.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}) },
			"Append":  func() error { return old.Append(background, "a", []entry{{Seq: 1, Value: "y"}}) },
			"Again":   func() error { return old.Append(background, "a", []entry{{Seq: 0, Value: "x"}}) },
			"Seal":    func() error { return old.Seal(background, "a", cowchangeset.Manifest{Len: 1}) },
			"Applied": func() error { return old.Applied(background, "a", 1) },
			"Abort":   func() error { return old.Abort(background, "a", "") },
			"Prune":   func() error { return old.Prune(background, 1) },
		} {
			err := call()
			require.ErrorIs(t, err, sqlstore.ErrFenced, name)
			require.Contains(t, err.Error(), `"host-2" has epoch 2, and this store has 1`)
		}
		require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #changesets WHERE NOT sealed"))
		require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #entries"))
		require.NoError(t, young.Append(background, "a", []entry{{Seq: 1, Value: "y"}}))

		again := d.claimed(t) // the old process may take the tables back, as a new one may
		require.ErrorIs(t, young.Seal(background, "a", cowchangeset.Manifest{Len: 2, Last: 1}), sqlstore.ErrFenced)
		require.NoError(t, again.Seal(background, "a", cowchangeset.Manifest{Len: 2, Last: 1}))
	})
}

// A tracker that has used its store keeps it, so that no second one is given its receipts.
func TestReleaseOfATracker(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		s.Release() // it was not used
		require.ErrorIs(t, s.Start(background, header{ID: "a", Ordinal: 1}), sqlstore.ErrUnclaimed)
		one, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
		require.NoError(t, err)
		_, err = one.Start(background)
		require.NoError(t, err)
		_, err = one.Record("a")
		require.NoError(t, err)
		s.Release()
		two, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
		if err == nil {
			first, _ := one.Record("of the first")
			again, err := two.Record("of the second")
			t.Fatalf("two trackers have recorded at %v and %v: %v", first, again, err)
		}
		require.ErrorIs(t, err, sqlstore.ErrClaimed)
		two, err = cowchangeset.Resume(background, cowchangeset.Config[string]{Store: d.store(t)})
		require.NoError(t, err)
		_, err = two.Record("of the second")
		require.NoError(t, err)
		_, err = one.Record("of the first")
		require.ErrorIs(t, err, sqlstore.ErrFenced)
	})
}

// Of a Release and a call that writes at the same time, one comes first: the call finds no claim, or keeps it.
func TestReleaseBesideACall(t *testing.T) {
	d := memory(t)
	d.store(t)
	cancelled, cancel := context.WithCancel(background)
	cancel()
	for range 2000 {
		s, err := sqlstore.New(d.DB, d.options())
		require.NoError(t, err)
		require.NoError(t, s.Claim(background))
		var wg sync.WaitGroup
		var tried atomic.Bool
		for range 3 {
			wg.Go(func() {
				if err := s.Start(cancelled, header{ID: "a", Ordinal: 1}); !errors.Is(err, sqlstore.ErrUnclaimed) {
					tried.Store(true)
				}
			})
		}
		wg.Go(s.Release)
		wg.Wait()
		if err := s.Claim(background); tried.Load() {
			require.ErrorIs(t, err, sqlstore.ErrClaimed)
		} else {
			require.NoError(t, err)
		}
	}
}

// A Claim waits for the transaction in which the other process applies, or fails; and it
// is after that transaction, or before it.
func TestClaimWaitsForApplyTx(t *testing.T) {
	eachShared(t, func(t *testing.T, d database) {
		s := d.store(t)
		tracker := cowchangeset.MustNew(cowchangeset.Config[string]{Store: s})
		c, err := tracker.Start(background)
		require.NoError(t, err)
		d.exec(t, "CREATE TABLE #ledger (ordinal BIGINT NOT NULL, entries BIGINT NOT NULL)")
		e := d.other(t)
		o := e.options()
		o.ClaimTimeout = 50 * time.Millisecond
		hasty, err := sqlstore.New(e.DB, o)
		require.NoError(t, err)
		patient, err := sqlstore.New(e.DB, e.options())
		require.NoError(t, err)

		claimed := make(chan error, 1)
		err = s.ApplyTx(background, c, func(ctx context.Context, tx *sql.Tx, f cowchangeset.Final[string]) error {
			require.ErrorIs(t, hasty.Claim(background), context.DeadlineExceeded)
			short, cancel := context.WithTimeout(background, 50*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, patient.Claim(short), context.DeadlineExceeded)
			go func() { claimed <- patient.Claim(background) }()
			select {
			case err := <-claimed:
				t.Error("claimed while a changeset is applied: ", err)
			case <-time.After(20 * time.Millisecond): // it may come too late to see a fault, never too early
			}
			return enter(d.prefix, 1)(ctx, tx, f)
		})
		require.NoError(t, err)
		require.NoError(t, <-claimed)

		c, err = tracker.Start(background)
		require.ErrorIs(t, err, sqlstore.ErrFenced)
		require.Nil(t, c)
		next, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: d.other(t).store(t)})
		require.NoError(t, err)
		last, _ := next.Current()
		require.Equal(t, cowchangeset.AllApplied, last.Applied())
	})
}

// Trackers that take the tables from each other lose nothing, and apply each changeset
// once, though all of them try.
func TestClaimsInTurn(t *testing.T) {
	eachShared(t, func(t *testing.T, d database) {
		d.store(t)
		d.exec(t, "CREATE TABLE #ledger (ordinal BIGINT NOT NULL, entries BIGINT NOT NULL)")
		var wg sync.WaitGroup
		var mu sync.Mutex
		acknowledged := map[string]bool{}
		for g := range 3 {
			e := d.other(t)
			wg.Go(func() {
				for n := range 6 {
					tracker, s, err := resumed(e.driver, e.DB, e.prefix)
					if err != nil {
						t.Error(err)
						return
					}
					for i := range 3 { // until it loses the tables
						_, err := tracker.Start(background)
						if err != nil {
							break
						}
						text := fmt.Sprint(g, n, i)
						if _, err := tracker.Record(text); err == nil {
							mu.Lock()
							acknowledged[text] = true
							mu.Unlock()
						}
						for p := range tracker.Pending() {
							s.ApplyTx(background, p, enter(e.prefix, p.Ordinal()))
						}
					}
				}
			})
		}
		wg.Wait()
		tracker, s, err := resumed(d.driver, d.DB, d.prefix)
		require.NoError(t, err)
		for p := range tracker.Pending() {
			require.NoError(t, s.ApplyTx(background, p, enter(d.prefix, p.Ordinal())))
		}
		for _, e := range tracker.Trail().All() {
			delete(acknowledged, e)
		}
		require.Empty(t, acknowledged)
		if c, open := tracker.Current(); open {
			require.NoError(t, s.ApplyTx(background, c, enter(d.prefix, c.Ordinal())))
		}
		require.EqualValues(t, len(tracker.IDs()), d.number(t, "SELECT COUNT(*) FROM #ledger"))
		require.EqualValues(t, len(tracker.IDs()), d.number(t, "SELECT COUNT(DISTINCT ordinal) FROM #ledger"))
	})
}
