package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Compare errors with errors.Is.
var (
	// ErrClosed: the journal has been closed, or was never opened.
	ErrClosed = errors.New("journal: closed")

	// ErrLocked: this or another process has the journal open.
	ErrLocked = errors.New("journal: in use")

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
	ErrNotFound = errors.New("journal: no such changeset")

	// ErrRewound: lines that a Reader has read are no longer in the journal, since a
	// failed write was taken back, or the journal was repaired. Begin again after a line
	// that is known to be there.
	ErrRewound = errors.New("journal: lines that were read were taken back")
)

// errNoSegments: there is no journal, where there must be one.
var errNoSegments = fmt.Errorf("journal: there are no segments: %w", fs.ErrNotExist)

// errNoDirectory: a path is perhaps that of a segment, and not of the journal.
var errNoDirectory = errors.New("it is no directory: name the one that the segments are in")

// needContext panics if a method is called with a nil context.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("journal: " + method + " called with a nil context")
	}
}

// CorruptError says at which place a journal is not as it was written.
type CorruptError struct {
	File   string // the segment; empty if the reader has no name
	Line   int    // in the journal, whose first line is 1
	Offset int64  // of the line's first byte, in the file; everything before it is good
	Reason string
}

// Error names the place and the reason.
func (e *CorruptError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("journal: corrupt at line %d (byte %d): %s", e.Line, e.Offset, e.Reason)
	}
	return fmt.Sprintf("journal: corrupt at line %d (byte %d of %s): %s", e.Line, e.Offset, e.File, e.Reason)
}

// DecodeError names an entry that could not be decoded. An Options.Upcast can fix it.
type DecodeError struct {
	Journal     string // the path
	Line        int
	ChangesetID string
	Seq         uint64
	Err         error
}

// Error names the entry and the reason.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("journal: %s, line %d: entry %d of changeset %q: %v", e.Journal, e.Line, e.Seq, e.ChangesetID, e.Err)
}

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error { return e.Err }
