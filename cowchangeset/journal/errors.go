package journal

import (
	"errors"
	"fmt"
	"io/fs"
)

// Errors are compared with errors.Is.
var (
	// ErrClosed: the journal has been closed, or was never opened.
	ErrClosed = errors.New("journal: closed")

	// ErrLocked: this or another process has the journal open.
	ErrLocked = errors.New("journal: in use")

	// ErrClaimed: a tracker uses the journal already.
	ErrClaimed = errors.New("journal: a tracker uses it already")

	// ErrConflict: the call does not fit what the journal has. A tracker gets it
	// if its IDs are not unique, or if the journal is used by others beside it.
	// The same call fails again.
	ErrConflict = errors.New("journal: call does not fit the journal")

	// ErrBroken: fsync has failed, or what a failed write has left could not be
	// removed, or the last segment is not the file that was opened any more, or
	// has another size than the journal has left it with. All calls fail until the
	// journal is opened again.
	ErrBroken = errors.New("journal: broken")

	// ErrNotFound: the journal has no such changeset, or it was pruned.
	ErrNotFound = errors.New("journal: no such changeset")

	// ErrRewound: lines that a Reader has read are not in the journal any more,
	// as a write that has failed was taken back, or the journal was repaired.
	// Begin again after a line that is known to be there.
	ErrRewound = errors.New("journal: lines that were read were taken back")
)

// errNoSegments: there is no journal, where there must be one.
var errNoSegments = fmt.Errorf("journal: there are no segments: %w", fs.ErrNotExist)

// errSegment: a path is that of a segment, and not of the journal.
var errSegment = errors.New("journal: the file is a segment: name the directory that it is in")

// CorruptError says where a journal is not as it was written.
type CorruptError struct {
	File   string // the segment; empty if what was read is not known by name
	Line   int    // in the journal, whose first line is 1
	Offset int64  // of the line's first byte, in the file; what comes before it is good
	Reason string
}

// Error names the place and the reason.
func (e *CorruptError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("journal: corrupt at line %d (byte %d): %s", e.Line, e.Offset, e.Reason)
	}
	return fmt.Sprintf("journal: corrupt at line %d (byte %d of %s): %s", e.Line, e.Offset, e.File, e.Reason)
}

// DecodeError says which entry could not be decoded. Options.Upcast can mend it.
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
