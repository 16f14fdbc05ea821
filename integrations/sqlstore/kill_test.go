package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/integrations/sqlstore"
	"github.com/latchfree/latchfree/internal/tools/kill"
)

// Variables of the environment that make the test binary the child.
const (
	childDriver = "SQLSTORE_TEST_CHILD_DRIVER"
	childDSN    = "SQLSTORE_TEST_CHILD_DSN"
	childPrefix = "SQLSTORE_TEST_CHILD_PREFIX"
)

// resumed returns a tracker on the tables with a prefix, and its store.
func resumed(driver string, db *sql.DB, prefix string) (*cowchangeset.Tracker[string], *sqlstore.Store[string], error) {
	o := sqlstore.Options[string]{Dialect: sqlstore.SQLite, Prefix: prefix}
	if driver == "pgx" {
		o.Dialect = sqlstore.PostgreSQL
	}
	s, err := sqlstore.New(db, o)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Migrate(background); err != nil {
		return nil, nil, err
	}
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s})
	return tracker, s, err
}

// enter returns what an Apply does: it enters the changeset into a ledger, which is in
// the same database.
func enter(prefix string, ordinal uint64) func(context.Context, *sql.Tx, cowchangeset.Final[string]) error {
	return func(ctx context.Context, tx *sql.Tx, f cowchangeset.Final[string]) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %sledger (ordinal, entries) VALUES (%d, %d)", prefix, ordinal, f.Len()))
		return err
	}
}

// child records from several goroutines until it is killed, starts a changeset now and
// then, applies the one before it, and prints the receipt of each entry when its Record
// has returned.
func child(driver, dsn string) {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(3)
		}
	}
	prefix := os.Getenv(childPrefix)
	db, err := sql.Open(driver, dsn)
	check(err)
	tracker, s, err := resumed(driver, db, prefix)
	check(err)
	if _, open := tracker.Current(); !open {
		_, err = tracker.Start(background)
		check(err)
	}
	for c := range tracker.Pending() { // the process before was killed
		check(s.ApplyTx(background, c, enter(prefix, c.Ordinal())))
	}
	record := func(g int) {
		for i := 0; ; i++ {
			es := make([]string, 1+i%3)
			for k := range es {
				es[k] = fmt.Sprintf("%d.%d.%d.%d", os.Getpid(), g, i, k)
			}
			r, err := tracker.RecordBatch(es)
			check(err)
			for k, e := range es {
				_, err := fmt.Println(r.ChangesetID, r.Ordinal, r.Seq+uint64(k), e)
				check(err)
			}
			if g == 0 && i%3 == 0 {
				c, err := tracker.Start(background)
				check(err)
				p := c.Previous()
				check(s.ApplyTx(background, p, enter(prefix, p.Ordinal())))
				fmt.Println("applied", p.Ordinal(), 0, "-")
			}
		}
	}
	for g := range 3 {
		go record(1 + g)
	}
	record(0)
}

// A process that is killed at any moment has lost nothing that was acknowledged, nothing
// is there twice, and each changeset that is applied has one effect.
func TestKilled(t *testing.T) {
	t.Run("SQLiteFile", func(t *testing.T) { killed(t, file(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { killed(t, postgres(t)) })
}

func killed(t *testing.T, d database) {
	d.exec(t, "CREATE TABLE #ledger (ordinal BIGINT NOT NULL, entries BIGINT NOT NULL)")
	acknowledged, applied := map[string]cowchangeset.Receipt{}, map[uint64]bool{}
	rounds := 6
	if long() {
		rounds = 60
	}
	for round := range rounds {
		most := rand.IntN(300)
		if round == 0 {
			most = 300 // so that something is applied
		}
		lines := kill.After(t, most, nil, childDriver+"="+d.driver, childDSN+"="+d.dsn, childPrefix+"="+d.prefix)
		for _, line := range lines {
			var r cowchangeset.Receipt
			var e string
			_, err := fmt.Sscan(line, &r.ChangesetID, &r.Ordinal, &r.Seq, &e)
			require.NoError(t, err, line)
			if r.ChangesetID == "applied" {
				applied[r.Ordinal] = true
			} else {
				acknowledged[e] = r
			}
		}
		tracker, _, err := resumed(d.driver, d.DB, d.prefix)
		require.NoError(t, err)
		found := map[string]bool{}
		for r, e := range tracker.Trail().All() {
			if want, ok := acknowledged[e]; ok {
				require.Equal(t, want, r, "round %d: %s", round, e)
			}
			require.False(t, found[e], "round %d: %s is there twice", round, e)
			found[e] = true
		}
		for e, r := range acknowledged {
			require.True(t, found[e], "round %d: %s, %v, is not there", round, e, r)
		}
		for _, id := range tracker.IDs() {
			c, _ := tracker.ByID(id)
			n := d.number(t, fmt.Sprintf("SELECT COUNT(*) FROM #ledger WHERE ordinal = %d", c.Ordinal()))
			if c.Applied() != cowchangeset.AllApplied {
				require.Zero(t, n, "round %d: changeset %d is not applied", round, c.Ordinal())
				require.False(t, applied[c.Ordinal()])
				continue
			}
			require.EqualValues(t, 1, n, "round %d: changeset %d is applied", round, c.Ordinal())
			final, err := c.Seal(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, final.Len(), d.number(t, fmt.Sprintf("SELECT entries FROM #ledger WHERE ordinal = %d", c.Ordinal())))
		}
		require.NoError(t, tracker.Flush(t.Context())) // Resume has told it of seals
	}
	require.NotEmpty(t, acknowledged)
	require.NotEmpty(t, applied)
	t.Logf("%d entries, %d changesets applied", len(acknowledged), len(applied))
}
