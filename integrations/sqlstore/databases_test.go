package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/storetest"
	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// database is one on which tests run, with tables of its own.
type database struct {
	*sql.DB
	driver, dsn string
	dialect     sqlstore.Dialect
	prefix      string
}

// fileDSN is how README says to open a file, but for the way it is synced. Tests kill
// processes, and no machines: they need no sync.
const fileDSN = "file:%s?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(%s)"

// postgresVariable is the variable of the environment with the address of a server, or
// "off" for no tests on PostgreSQL.
const postgresVariable = "SQLSTORE_TEST_POSTGRES"

var prefixes atomic.Int64

// each runs a test on all databases that there are.
func each(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("SQLiteMemory", func(t *testing.T) { test(t, memory(t)) })
	t.Run("SQLiteFile", func(t *testing.T) { test(t, file(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgres(t)) })
}

func memory(t testing.TB) database {
	d := connect(t, "sqlite", ":memory:", sqlstore.SQLite)
	d.SetMaxOpenConns(1) // each connection has a memory of its own
	return d
}

func file(t testing.TB) database { return fileSynced(t, "OFF") }

func fileSynced(t testing.TB, sync string) database {
	d := connect(t, "sqlite", fmt.Sprintf(fileDSN, filepath.Join(t.TempDir(), "changes.db"), sync), sqlstore.SQLite)
	require.NoError(t, d.Ping()) // two connections that make it a WAL at once might fail
	return d
}

func postgres(t testing.TB) database {
	dsn := os.Getenv(postgresVariable)
	switch dsn {
	case "off":
		t.Skip(postgresVariable + " is off")
	case "":
		var reason string
		var err error
		dsn, reason, err = startServer()
		require.NoError(t, err, "set %s=off to do without", postgresVariable)
		if reason != "" {
			t.Skip(reason)
		}
	}
	return connect(t, "pgx", dsn, sqlstore.PostgreSQL)
}

func connect(t testing.TB, driver, dsn string, dialect sqlstore.Dialect) database {
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	d := database{db, driver, dsn, dialect, fmt.Sprintf("test%d_%d_", os.Getpid(), prefixes.Add(1))}
	t.Cleanup(func() {
		for _, name := range []string{"store", "changesets", "entries", "ledger"} {
			db.Exec("DROP TABLE IF EXISTS " + d.prefix + name)
		}
		db.Close()
	})
	return d
}

// options returns those of a store on the tables of d.
func (d database) options() sqlstore.Options[string] {
	return sqlstore.Options[string]{Dialect: d.dialect, Prefix: d.prefix}
}

// store returns a store on the tables of d, which are made if they are not there.
func (d database) store(t testing.TB) *sqlstore.Store[string] {
	t.Helper()
	s, err := sqlstore.New(d.DB, d.options())
	require.NoError(t, err)
	require.NoError(t, s.Migrate(background))
	return s
}

// claimed is store, with a claim.
func (d database) claimed(t testing.TB) *sqlstore.Store[string] {
	t.Helper()
	s := d.store(t)
	require.NoError(t, s.Claim(background))
	return s
}

// exec executes a statement in which # stands for the prefix.
func (d database) exec(t testing.TB, text string) {
	t.Helper()
	_, err := d.Exec(replacePrefix(text, d.prefix))
	require.NoError(t, err)
}

// number returns the result of a query as exec's.
func (d database) number(t testing.TB, text string) (n int64) {
	t.Helper()
	require.NoError(t, d.QueryRow(replacePrefix(text, d.prefix)).Scan(&n))
	return n
}

var background = context.Background()

type entry = cowchangeset.Entry[string]

type header = cowchangeset.Header

// The store is as stores should be.
func TestStore(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		storetest.Run(t, func(t *testing.T) storetest.Opener {
			d.prefix = fmt.Sprintf("test%d_%d_", os.Getpid(), prefixes.Add(1))
			t.Cleanup(func() {
				for _, name := range []string{"store", "changesets", "entries"} {
					d.exec(t, "DROP TABLE #"+name)
				}
			})
			return func() (cowchangeset.Loader[string], error) {
				s, err := sqlstore.New(d.DB, d.options())
				if err == nil {
					err = s.Migrate(background)
				}
				return s, err
			}
		})
	})
}
