package journal

import (
	"errors"
	"fmt"
)

// Errors are compared with errors.Is.
var (
	// ErrClosed: the journal has been closed, or was never opened.
	ErrClosed = errors.New("journal: closed")

	// ErrLocked: this or another process has the file open as a journal.
	ErrLocked = errors.New("journal: file is in use")

	// ErrConflict: the call does not fit what the journal has. A tracker never
	// gets it. The same call fails again.
	ErrConflict = errors.New("journal: call does not fit the journal")

	// ErrBroken: fsync has failed, or what a failed write has left could not be
	// removed. All calls fail until the file is opened again.
	ErrBroken = errors.New("journal: broken")
)

// CorruptError says where a file is not as the journal has written it.
type CorruptError struct {
	Line   int   // the first line is 1
	Offset int64 // of the line's first byte; what comes before it is good
	Reason string
}

// Error names the line and the reason.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal: corrupt at line %d (byte %d): %s", e.Line, e.Offset, e.Reason)
}
