package journal

import (
	"context"
	"errors"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
)

// Compare errors with errors.Is.
var (
	// ErrClosed: the journal has been closed, or was never opened.
	ErrClosed = errors.New("journal: closed")

	// ErrLocked: this or another process has the journal open.
	ErrLocked = chain.ErrLocked

	// ErrClaimed: a tracker uses the journal already.
	ErrClaimed = errors.New("journal: a tracker uses it already")

	// ErrConflict: the call contradicts the contents of the journal. A tracker gets it
	// if its IDs are not unique, or if others use the journal beside it. The same call
	// fails again.
	ErrConflict = errors.New("journal: call does not fit the journal")

	// ErrBroken: fsync has failed, or the remains of a failed write could not be
	// removed, or a segment may have begun although that has failed, or the last
	// segment is no longer the file that was opened, or has another size than the
	// journal has given it. All calls fail until the journal is opened again.
	ErrBroken = errors.New("journal: broken")

	// ErrNotFound: the journal has no such changeset, or it was pruned.
	ErrNotFound = chain.ErrNotFound

	// ErrDropped: the line is in a segment that was dropped, or archived.
	ErrDropped = chain.ErrDropped
)

// needContext panics if a method is called with a nil context.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("journal: " + method + " called with a nil context")
	}
}
