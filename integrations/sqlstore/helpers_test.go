package sqlstore_test

import (
	"database/sql"
	"flag"
	"os"
	"strings"
)

// flagValue returns the value of a flag of the test binary.
func flagValue(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// long reports whether tests may take minutes.
func long() bool { return os.Getenv("SQLSTORE_TEST_LONG") != "" }

// ping tells whether a PostgreSQL server answers.
func ping(dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Ping()
}

func replacePrefix(text, prefix string) string { return strings.ReplaceAll(text, "#", prefix) }
