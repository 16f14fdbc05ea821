package snapfile

import (
	"errors"
	"fmt"
)

// ErrNotSynced reports that Save has replaced the file and that the directory could not be
// synced: the path names the new file, and after a crash of the machine perhaps the old one.
var ErrNotSynced = errors.New("snapfile: the new file is in place, and fsync of its directory failed")

// CorruptError says at which place a file is not as it was written.
type CorruptError struct {
	File   string // the path that Load was given; empty for Read
	Offset int64  // of the first byte of the part that is not good; all before it is
	Reason string
}

// Error names the place and the reason.
func (e *CorruptError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("snapfile: corrupt at byte %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("snapfile: corrupt at byte %d of %s: %s", e.Offset, e.File, e.Reason)
}
