package chain

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrLocked: this or another process has the journal open.
var ErrLocked = errors.New("journal: in use")

// ErrNotFound: the journal has no such changeset, or it was pruned.
var ErrNotFound = errors.New("journal: no such changeset")

// ErrNoSegments: there is no journal, where there must be one.
var ErrNoSegments = fmt.Errorf("journal: there are no segments: %w", fs.ErrNotExist)

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
