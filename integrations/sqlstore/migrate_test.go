package sqlstore_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/integrations/sqlstore"
)

// Migrate makes what is missing, as often as it is called, and by several processes at
// once; what is there stays.
func TestMigrate(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s, err := sqlstore.New(d.DB, d.options())
		require.NoError(t, err)
		require.ErrorIs(t, s.Claim(background), sqlstore.ErrNotMigrated)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := s.Migrate(background); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.NoError(t, s.Claim(background))
		require.NoError(t, s.Start(background, header{ID: "a", Ordinal: 1}))
		require.NoError(t, s.Append(background, "a", []entry{{Seq: 0, Value: "x"}}))
		require.NoError(t, s.Migrate(background))
		require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM #entries"))
		require.EqualValues(t, 1, d.number(t, "SELECT epoch FROM #store"))
	})
}

// Tables of a later version, or with parts missing, are an error that says so.
func TestMigrateOthers(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t)
		d.exec(t, "UPDATE #store SET version = 2")
		for _, call := range []func() error{func() error { return s.Migrate(background) }, func() error { return s.Claim(background) }} {
			err := call()
			require.ErrorIs(t, err, sqlstore.ErrNotMigrated)
			require.ErrorContains(t, err, "version 2 of the schema, and this package has version 1")
		}
		d.exec(t, "UPDATE #store SET version = 1")
		d.exec(t, "DROP TABLE #entries")
		require.ErrorContains(t, s.Claim(background), "there is no table "+d.prefix+"entries")
		require.NoError(t, s.Migrate(background))
		require.NoError(t, s.Claim(background))
		d.exec(t, "DELETE FROM #store")
		require.ErrorIs(t, s.Start(background, header{ID: "a", Ordinal: 1}), sqlstore.ErrNotMigrated)
		s, err := sqlstore.New(d.DB, d.options())
		require.NoError(t, err)
		require.ErrorContains(t, s.Claim(background), d.prefix+"store has no row")
		require.NoError(t, s.Migrate(background))
		require.NoError(t, s.Claim(background))
	})
}

// A store in the wrong dialect says that, and leaves no transaction behind.
func TestWrongDialect(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		o := d.options()
		o.Dialect = sqlstore.SQLite + sqlstore.PostgreSQL - d.dialect
		s, err := sqlstore.New(d.DB, o)
		require.NoError(t, err)
		for name, call := range map[string]func() error{"Migrate": func() error { return s.Migrate(background) }, "Claim": func() error { return s.Claim(background) }} {
			require.ErrorContains(t, call(), "sqlstore: "+name+": the first statement in Options.Dialect, which is "+o.Dialect.String())
		}
		d.claimed(t)
	})
}

// A closed database is an error of every method, with the method's name.
func TestClosedDatabase(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		fresh := d.store(t)
		for _, name := range []string{"store", "changesets", "entries"} {
			d.exec(t, "DROP TABLE #"+name)
		}
		require.NoError(t, d.Close())
		const text = "sql: database is closed"
		require.EqualError(t, s.Start(background, header{ID: "a", Ordinal: 1}), "sqlstore: Start: "+text)
		require.EqualError(t, s.Append(background, "a", []entry{{}}), "sqlstore: Append: "+text)
		require.EqualError(t, s.Prune(background, 1), "sqlstore: Prune: "+text)
		require.EqualError(t, s.Migrate(background), "sqlstore: Migrate: "+text)
		require.ErrorContains(t, fresh.Claim(background), text)
		for _, err := range s.Load(background) {
			require.EqualError(t, err, "sqlstore: Load: "+text)
		}
	})
}

// Dropped tables are errors of the database, with the method's name.
func TestDroppedTables(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.claimed(t)
		d.exec(t, "DROP TABLE #store")
		require.ErrorContains(t, s.Start(background, header{ID: "a", Ordinal: 1}), "sqlstore: Start: ")
		require.ErrorContains(t, s.Start(background, header{ID: "a", Ordinal: 1}), d.prefix+"store")
	})
}

// Nil contexts panic.
func TestNilContexts(t *testing.T) {
	d := memory(t)
	s := d.claimed(t)
	var none context.Context
	for name, call := range map[string]func(){
		"Claim":   func() { s.Claim(none) },
		"Migrate": func() { s.Migrate(none) },
		"Start":   func() { s.Start(none, header{}) },
		"Append":  func() { s.Append(none, "", nil) },
		"Seal":    func() { s.Seal(none, "", manifest{}) },
		"Abort":   func() { s.Abort(none, "", "") },
		"Applied": func() { s.Applied(none, "", 0) },
		"Prune":   func() { s.Prune(none, 0) },
		"Load":    func() { s.Load(none) },
	} {
		require.PanicsWithValue(t, "sqlstore: Store."+name+" called with a nil context", call)
	}
	require.PanicsWithValue(t, "sqlstore: New called with a nil *sql.DB", func() { sqlstore.New(nil, d.options()) })
}
