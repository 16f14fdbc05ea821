package cowchangeset

import (
	"context"
	"errors"
	"fmt"
)

// Compare errors with errors.Is.
var (
	// ErrNoActive: there is no open changeset to record into.
	ErrNoActive = errors.New("cowchangeset: no active changeset")

	// ErrSealed: the changeset is sealed and accepts no more entries.
	ErrSealed = errors.New("cowchangeset: changeset is sealed")

	// ErrConflict: another changeset is the latest, not the named one.
	ErrConflict = errors.New("cowchangeset: not the latest changeset")

	// ErrApplying: an Apply of the changeset is under way.
	ErrApplying = errors.New("cowchangeset: changeset is being applied")

	// ErrApplied: the changeset has been applied.
	ErrApplied = errors.New("cowchangeset: changeset has been applied")

	// ErrAborted: the changeset has been aborted.
	ErrAborted = errors.New("cowchangeset: changeset has been aborted")

	// ErrStore: the store has failed or does not answer. See StoreError.
	ErrStore = errors.New("cowchangeset: store failed")

	// ErrRefused: the store is a Validator and refuses the entry. Nothing was recorded.
	ErrRefused = errors.New("cowchangeset: store refuses the entry")

	// ErrBacklogFull: the store is as far behind as Config.MaxBacklog allows. Nothing was
	// recorded.
	ErrBacklogFull = errors.New("cowchangeset: store is too far behind")

	// ErrStoreTimeout: the store has not answered within Config.StoreTimeout.
	ErrStoreTimeout = errors.New("cowchangeset: no answer within Config.StoreTimeout")

	errStoreExited = errors.New("runtime.Goexit was called")

	errEmptyID = errors.New("cowchangeset: Config.NewID returned an empty ID")
)

// needContext panics if a method is called with a nil context.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("cowchangeset: " + method + " called with a nil context")
	}
}

// NoActiveError is the error of Tracker.Record when the latest changeset is sealed and has
// no successor. It matches ErrNoActive and ErrSealed.
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

// StoreError is the error of operations that wait for the Store, when that fails or does
// not answer. It matches ErrStore, and the error that it wraps.
//
// Changes in memory stay. So do not record again: a Record that returns a StoreError has
// recorded its entry and returns the receipt, except with ErrBacklogFull, and the store
// gets the entry with the next call for that changeset, or from the tracker itself if the
// caller has only stopped waiting, as at StoreTimeout.
type StoreError struct {
	ChangesetID string // empty if the call was not for one changeset
	Method      string // of the Store; "wait" if the caller's context ended before the store's answer
	Err         error
}

// Error names the method and, if there is one, the changeset.
func (e *StoreError) Error() string {
	if e.ChangesetID == "" {
		return fmt.Sprintf("%v: %s: %v", ErrStore, e.Method, e.Err)
	}
	return fmt.Sprintf("%v: %s for changeset %q: %v", ErrStore, e.Method, e.ChangesetID, e.Err)
}

// Is reports whether target is ErrStore.
func (e *StoreError) Is(target error) bool { return target == ErrStore }

// Unwrap returns the store's error, or the cause of the context's end.
func (e *StoreError) Unwrap() error { return e.Err }
