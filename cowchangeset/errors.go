package cowchangeset

import (
	"errors"
	"fmt"
)

// Errors are compared with errors.Is.
var (
	// ErrNoActive: there is no changeset to record into.
	ErrNoActive = errors.New("cowchangeset: no active changeset")

	// ErrSealed: the changeset is sealed and accepts no more entries.
	ErrSealed = errors.New("cowchangeset: changeset is sealed")

	// ErrConflict: another changeset is the latest, not the one named.
	ErrConflict = errors.New("cowchangeset: not the latest changeset")

	errEmptyID = errors.New("cowchangeset: Config.NewID returned an empty ID")
)

// NoActiveError is what Tracker.Record and Tracker.RecordBatch return when the
// latest changeset is sealed and none follows it. It matches ErrNoActive and
// ErrSealed. All failures on one changeset share one value, which must not be
// changed.
type NoActiveError struct {
	ChangesetID string // of the sealed changeset
	Ordinal     uint64
}

// Error names the sealed changeset.
func (e *NoActiveError) Error() string {
	return fmt.Sprintf("%v: %q (number %d) is sealed and has no successor", ErrNoActive, e.ChangesetID, e.Ordinal)
}

// Is reports whether target is ErrNoActive or ErrSealed.
func (e *NoActiveError) Is(target error) bool { return target == ErrNoActive || target == ErrSealed }
