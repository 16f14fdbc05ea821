package sqlstore

import (
	"fmt"
	"regexp"
	"time"
)

// Dialect is the SQL that a database speaks.
type Dialect uint8

const (
	// SQLite is version 3.35 or later.
	SQLite Dialect = iota + 1

	// PostgreSQL is version 12 or later.
	PostgreSQL
)

// String returns the constant's name.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// Options holds a Store's settings. Dialect is required; zero values of the others mean
// their defaults.
type Options[E any] struct {
	// Dialect says which database it is.
	Dialect Dialect

	// Prefix begins the names of the tables: lower-case ASCII letters, digits and
	// underscores, no digit first, at most 40 bytes. Empty means "cowchangeset_". Stores
	// with different prefixes have nothing in common.
	Prefix string

	// Codec encodes the values. Nil means JSON[E].
	Codec Codec[E]

	// MaxEntry is the largest number of bytes of an encoded value. Zero means 16 MiB.
	MaxEntry int

	// Holder is written beside the claim, and is part of the ErrFenced of the process
	// that has lost it: a host name, for example. It may be empty.
	Holder string

	// ClaimTimeout bounds how long Claim waits for the database, and thus for the
	// transactions of the process that has the claim. Zero means 30 seconds.
	ClaimTimeout time.Duration
}

// Defaults of Options.
const (
	defaultPrefix       = "cowchangeset_"
	defaultClaimTimeout = 30 * time.Second
)

// maxPrefix leaves room for the rest of a name: PostgreSQL cuts names at 63 bytes.
const maxPrefix = 40

var prefixes = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// validate returns an error that names the setting at fault.
func (o Options[E]) validate() error {
	switch {
	case o.Dialect != SQLite && o.Dialect != PostgreSQL:
		return fmt.Errorf("sqlstore: Options.Dialect %v: must be SQLite or PostgreSQL", o.Dialect)
	case o.Prefix != "" && (len(o.Prefix) > maxPrefix || !prefixes.MatchString(o.Prefix)):
		return fmt.Errorf("sqlstore: Options.Prefix %q: must be at most %d lower-case letters, digits and underscores, no digit first", o.Prefix, maxPrefix)
	case o.MaxEntry < 0:
		return fmt.Errorf("sqlstore: Options.MaxEntry %d: must not be negative", o.MaxEntry)
	case o.ClaimTimeout < 0:
		return fmt.Errorf("sqlstore: Options.ClaimTimeout %v: must not be negative", o.ClaimTimeout)
	case badText(o.Holder, maxID):
		return fmt.Errorf("sqlstore: Options.Holder %q: must be UTF-8 without NUL, at most %d bytes", o.Holder, maxID)
	}
	return nil
}
