package sqlstore

import (
	"context"
	"errors"
	"fmt"
)

// Compare errors with errors.Is.
var (
	// ErrClaimed: a tracker uses this Store already.
	ErrClaimed = errors.New("sqlstore: a tracker uses it already")

	// ErrUnclaimed: a method that writes was called without a claim. New and Resume of
	// cowchangeset claim the store.
	ErrUnclaimed = errors.New("sqlstore: not claimed")

	// ErrFenced: another Store, as in another process, has claimed the tables since. All
	// calls that write fail. Make a Store and Resume anew to take the tables back.
	ErrFenced = errors.New("sqlstore: another process has claimed the tables")

	// ErrNotMigrated: the tables are missing, or of another version of the schema.
	ErrNotMigrated = errors.New("sqlstore: the tables are not as Migrate makes them")

	// ErrConflict: the call contradicts what the tables have. A tracker gets it if its
	// IDs are not unique. The same call fails again.
	ErrConflict = errors.New("sqlstore: call does not fit the tables")

	// ErrCorrupt: the tables have rows that no Store has written.
	ErrCorrupt = errors.New("sqlstore: foreign rows in the tables")

	// ErrValue: the codec cannot encode a value, or not so that it can be read back, or
	// its encoding is too long.
	ErrValue = errors.New("sqlstore: value cannot be kept")
)

// failed returns err with the name of the method, unless it is one of the errors above,
// which say what they are about.
func failed(ctx context.Context, method string, err error) error {
	for _, own := range []error{ErrClaimed, ErrUnclaimed, ErrFenced, ErrNotMigrated, ErrConflict, ErrCorrupt, ErrValue} {
		if errors.Is(err, own) {
			return err
		}
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("sqlstore: %s: %w: %w", method, cause, err) // drivers have words of their own for it
	}
	return fmt.Errorf("sqlstore: %s: %w", method, err)
}

// conflict returns an ErrConflict about a changeset.
func conflict(id, format string, args ...any) error {
	return fmt.Errorf("%w: changeset %q: %s", ErrConflict, id, fmt.Sprintf(format, args...))
}

// needContext panics if a method is called with a nil context.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("sqlstore: Store." + method + " called with a nil context")
	}
}
