package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/integrations/sqlstore"
)

func TestOptions(t *testing.T) {
	d := memory(t)
	for text, change := range map[string]func(*sqlstore.Options[string]){
		`sqlstore: Options.Dialect Dialect(0): must be SQLite or PostgreSQL`:                                                          func(o *sqlstore.Options[string]) { o.Dialect = 0 },
		`sqlstore: Options.Dialect Dialect(3): must be SQLite or PostgreSQL`:                                                          func(o *sqlstore.Options[string]) { o.Dialect = 3 },
		`sqlstore: Options.Prefix "a-b": must be at most 40 lower-case letters, digits and underscores, no digit first`:               func(o *sqlstore.Options[string]) { o.Prefix = "a-b" },
		`sqlstore: Options.Prefix "A": must be at most 40 lower-case letters, digits and underscores, no digit first`:                 func(o *sqlstore.Options[string]) { o.Prefix = "A" },
		`sqlstore: Options.Prefix "1": must be at most 40 lower-case letters, digits and underscores, no digit first`:                 func(o *sqlstore.Options[string]) { o.Prefix = "1" },
		`sqlstore: Options.Prefix "` + strings.Repeat("a", 41) + `": must be at most 40 lower-case letters, digits and underscores, `: func(o *sqlstore.Options[string]) { o.Prefix = strings.Repeat("a", 41) },
		`sqlstore: Options.MaxEntry -1: must not be negative`:                                                                         func(o *sqlstore.Options[string]) { o.MaxEntry = -1 },
		`sqlstore: Options.ClaimTimeout -1ns: must not be negative`:                                                                   func(o *sqlstore.Options[string]) { o.ClaimTimeout = -1 },
		`sqlstore: Options.Holder "\xff": must be UTF-8 without NUL, at most 1024 bytes`:                                              func(o *sqlstore.Options[string]) { o.Holder = "\xff" },
	} {
		o := d.options()
		change(&o)
		_, err := sqlstore.New(d.DB, o)
		require.ErrorContains(t, err, text)
	}
	require.Equal(t, "SQLite PostgreSQL", sqlstore.SQLite.String()+" "+sqlstore.PostgreSQL.String())
}

// The longest prefix works, and so does the default.
func TestPrefix(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		d.prefix = strings.Repeat("p", 40)
		d.claimed(t)
		for _, name := range []string{"store", "changesets", "entries"} {
			d.exec(t, "DROP TABLE #"+name)
		}
	})
	d := memory(t)
	s, err := sqlstore.New(d.DB, sqlstore.Options[string]{Dialect: sqlstore.SQLite})
	require.NoError(t, err)
	require.NoError(t, s.Migrate(background))
	require.Zero(t, d.number(t, "SELECT COUNT(*) FROM cowchangeset_entries"))
}
