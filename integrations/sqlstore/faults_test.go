package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// eachFaulty runs a test on the databases that have more than one connection.
func eachFaulty(t *testing.T, test func(t *testing.T, d, broken database, f *faults)) {
	run := func(t *testing.T, d database) {
		broken, f := faulty(t, d)
		test(t, d, broken, f)
	}
	t.Run("SQLiteFile", func(t *testing.T) { run(t, file(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { run(t, postgres(t)) })
}

// Whichever operation of the database fails, before or after it is done: the call fails,
// and when it is repeated all is as if nothing had failed.
func TestFaultsAtEachOperation(t *testing.T) {
	eachFaulty(t, func(t *testing.T, d, broken database, f *faults) {
		want := []cowchangeset.Saved[string]{
			{Header: header{ID: "b", Ordinal: 2, Previous: "a"}, Sealed: true, Aborted: true, Reason: "because", Entries: []entry{{Seq: 0, Value: "x"}, {Seq: 4, Value: "y"}}, Applied: 1},
			{Header: header{ID: "d", Ordinal: 3, Previous: "b"}},
		}
		step := 1
		if d.dialect == sqlstore.PostgreSQL && !long() {
			step = 7 // each run makes tables
		}
		for n := 0; ; n += step {
			how := []fault{before, after}[n%2]
			broken.prefix = fmt.Sprintf("%s%d_", d.prefix, n)
			left := n / 2 // operations until one fails
			f.set(func(string) fault {
				if left--; left == -1 {
					return how
				}
				return none
			})
			s, err := sqlstore.New(broken.DB, broken.options())
			require.NoError(t, err)
			failures := 0
			for i, call := range []func() error{
				func() error { return s.Migrate(background) },
				func() error { return s.Claim(background) },
				func() error { return s.Start(background, header{ID: "a", Ordinal: 1}) },
				func() error { return s.Append(background, "a", []entry{{Seq: 1, Value: "x"}}) },
				func() error { return s.Seal(background, "a", cowchangeset.Manifest{Len: 1, Last: 1}) },
				func() error { return s.Applied(background, "a", cowchangeset.AllApplied) },
				func() error { return s.Start(background, header{ID: "b", Ordinal: 2, Previous: "a"}) },
				func() error { return s.Append(background, "b", []entry{{Seq: 0, Value: "x"}, {Seq: 4, Value: "y"}}) },
				func() error { return s.Seal(background, "b", cowchangeset.Manifest{Len: 2, Last: 4}) },
				func() error { return s.Applied(background, "b", 1) },
				func() error { return s.Abort(background, "b", "because") },
				func() error { return s.Start(background, header{ID: "c", Ordinal: 3, Previous: "b"}) },
				func() error { return s.Start(background, header{ID: "d", Ordinal: 3, Previous: "b"}) },
				func() error { return s.Prune(background, 2) },
			} {
				err := call()
				if err != nil {
					require.ErrorIs(t, err, errFault, "call %d, fault %d", i, n)
					require.Contains(t, err.Error(), "sqlstore: ")
					failures++
					require.NoError(t, call(), "call %d, repeated after fault %d", i, n)
				}
			}
			over := left >= 0
			f.set(healthy)
			var got []cowchangeset.Saved[string]
			for saved, err := range s.Load(background) {
				require.NoError(t, err)
				got = append(got, saved)
			}
			require.Equal(t, want, got, "fault %d", n)
			for _, name := range []string{"store", "changesets", "entries"} {
				_, err := d.Exec("DROP TABLE " + broken.prefix + name)
				require.NoError(t, err)
			}
			if over {
				require.Greater(t, n, 100) // all operations have failed in turn
				return
			}
			require.LessOrEqual(t, failures, 1)
		}
	})
}

// A tracker on a database that fails now and then, before and after commits, ends with
// what it has recorded.
func TestFaultsOfATracker(t *testing.T) {
	eachFaulty(t, func(t *testing.T, d, broken database, f *faults) {
		s := broken.store(t)
		tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
		require.NoError(t, err)
		r := rand.New(rand.NewPCG(1, 2))
		f.set(func(op string) fault {
			if r.IntN(12) > 0 {
				return none
			}
			return before + fault(r.IntN(2))
		})
		d.exec(t, "CREATE TABLE #ledger (ordinal BIGINT NOT NULL, entries BIGINT NOT NULL)")
		failures := 0
		again := func(do func() error) {
			for range 100 {
				err := do()
				if err == nil {
					return
				}
				failures++
				require.True(t, errors.Is(err, errFault) || errors.Is(err, cowchangeset.ErrStore), "%v", err)
			}
			t.Fatal("100 failures")
		}
		for range 5 {
			var c *cowchangeset.Changeset[string]
			again(func() (err error) {
				c, err = tracker.Start(background)
				return err
			})
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range 10 {
						tracker.Record(fmt.Sprint("entry ", g, i)) // it is recorded in any case
					}
				})
			}
			wg.Wait()
			again(func() error { return s.ApplyTx(background, c, enter(d.prefix, c.Ordinal())) })
		}
		again(func() error { return tracker.Flush(background) })
		require.NotZero(t, failures)
		f.set(healthy)
		resumed, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: d.store(t)})
		require.NoError(t, err)
		var want, got []string
		for r, e := range tracker.Trail().All() {
			want = append(want, fmt.Sprint(r, e))
		}
		for r, e := range resumed.Trail().All() {
			got = append(got, fmt.Sprint(r, e))
		}
		require.Len(t, got, 200)
		require.Equal(t, want, got)
		require.EqualValues(t, 5, d.number(t, "SELECT COUNT(*) FROM #ledger WHERE entries = 40"))
		require.EqualValues(t, 5, d.number(t, "SELECT COUNT(*) FROM #ledger"))
	})
}

// After its commit, ApplyTx needs the database no more: also a process that loses the
// tables then knows that the changeset is applied.
func TestApplyTxAfterTheCommit(t *testing.T) {
	eachFaulty(t, func(t *testing.T, d, broken database, f *faults) {
		s, _, c, apply := recorded(t, broken)
		_, err := c.Seal(background)
		require.NoError(t, err)
		begins := 0
		f.set(func(op string) fault {
			if op == "begin" {
				begins++
			}
			if begins > 1 {
				return before
			}
			return none
		})
		require.NoError(t, apply(enter(d.prefix, 1)))
		require.Equal(t, 1, begins)
		f.set(healthy)

		// The mark is remembered for one Applied, and not beyond the claim.
		require.NoError(t, d.claimed(t).Start(background, header{ID: "b", Ordinal: 2, Previous: c.ID()}))
		require.ErrorIs(t, s.Applied(background, c.ID(), cowchangeset.AllApplied), sqlstore.ErrFenced)
	})
}

// A commit that fails and has taken effect is not applied again.
func TestApplyTxLostAnswer(t *testing.T) {
	eachFaulty(t, func(t *testing.T, d, broken database, f *faults) {
		for _, how := range []fault{before, after} {
			d.prefix = fmt.Sprintf("%s%d_", broken.prefix, how)
			b := broken
			b.prefix = d.prefix
			d.exec(t, "CREATE TABLE #ledger (ordinal BIGINT NOT NULL, entries BIGINT NOT NULL)")
			s := b.store(t)
			tracker := cowchangeset.MustNew(cowchangeset.Config[string]{Store: s})
			c, err := tracker.Start(background)
			require.NoError(t, err)
			_, err = tracker.Record("x")
			require.NoError(t, err)
			_, err = c.Seal(background)
			require.NoError(t, err)

			runs := 0
			apply := func(ctx context.Context, tx *sql.Tx, final cowchangeset.Final[string]) error {
				runs++
				return enter(d.prefix, 1)(ctx, tx, final)
			}
			f.set(func(op string) fault {
				if op == "commit" {
					return how
				}
				return none
			})
			err = s.ApplyTx(background, c, apply)
			require.ErrorIs(t, err, errFault)
			require.Contains(t, err.Error(), "sqlstore: ApplyTx: ")
			f.set(healthy)
			require.NoError(t, s.ApplyTx(background, c, apply))
			require.Equal(t, map[fault]int{before: 2, after: 1}[how], runs)
			require.ErrorIs(t, s.ApplyTx(background, c, apply), cowchangeset.ErrApplied)
			require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #ledger"))
			for _, name := range []string{"store", "changesets", "entries", "ledger"} {
				d.exec(t, "DROP TABLE #"+name)
			}
		}
	})
}
