package shardedregistry

import (
	"errors"
	"fmt"
	"strconv"
)

var (
	// ErrExists reports that a key is already present, in an [*ExistsError].
	ErrExists = errors.New("shardedregistry: key exists")
	// ErrNotFound reports that a key is absent.
	ErrNotFound = errors.New("shardedregistry: key not found")
	// ErrConflict reports that a key has another version than was asked for, in a
	// [*ConflictError].
	ErrConflict = errors.New("shardedregistry: version conflict")
	// ErrNotUnique reports that another key has a value of a unique index, in a [*UniqueError].
	ErrNotUnique = errors.New("shardedregistry: value of a unique index is taken")
	// ErrInvalidKey reports an invalid key, together with the error of Config.Normalize, if any.
	ErrInvalidKey = errors.New("shardedregistry: invalid key")
	// ErrInvalidVersion reports a version that [Restore] does not accept: 0, or one above
	// [MaxRestored].
	ErrInvalidVersion = errors.New("shardedregistry: invalid version")
	// ErrTooManyRetries reports a function that has changed its own key, or one of those of its
	// transaction, in each of a million runs. Contention alone would have to spoil all of these.
	ErrTooManyRetries = errors.New("shardedregistry: the function keeps changing its own key")
	// ErrCompacted reports that changes after a revision are no longer remembered, in a
	// [*CompactedError].
	ErrCompacted = errors.New("shardedregistry: changes after the revision are forgotten")
	// ErrUnknownRevision reports a revision that the registry has not reached, or one of another
	// registry, in an [*UnknownRevisionError].
	ErrUnknownRevision = errors.New("shardedregistry: unknown revision")
)

// invalidKeyError says why a key is none. It matches [ErrInvalidKey].
//
// What the methods that every program calls say is put together without formats:
// fmt.Errorf alone would add 27 KB to the programs that do without.
type invalidKeyError struct {
	reason string // if err is nil
	err    error  // of Config.Normalize
}

func (e *invalidKeyError) Error() string {
	if e.err != nil {
		return ErrInvalidKey.Error() + ": " + fmt.Sprint(e.err) // which survives an Error that panics
	}
	return ErrInvalidKey.Error() + ": " + e.reason
}

// Unwrap returns ErrInvalidKey, and Normalize's error if it is due to that.
func (e *invalidKeyError) Unwrap() []error {
	if e.err != nil {
		return []error{ErrInvalidKey, e.err}
	}
	return []error{ErrInvalidKey}
}

// text is v in errors.
func (v Version) text() string { return strconv.FormatUint(uint64(v), 10) }

// ExistsError is the error of a Create whose key is present. It matches [ErrExists].
type ExistsError struct {
	Given   any     // the key as Create was given it
	Stored  any     // the key as it was given to the call that created it
	Version Version // the version that was present
}

// Error shows both spellings if they differ.
func (e *ExistsError) Error() string {
	given, stored := fmt.Sprint(e.Given), fmt.Sprint(e.Stored)
	if given == stored {
		return ErrExists.Error() + ": " + given + " at version " + e.Version.text()
	}
	return ErrExists.Error() + ": " + given + ", created as " + stored + ", at version " + e.Version.text()
}

// Unwrap returns [ErrExists].
func (e *ExistsError) Unwrap() error { return ErrExists }

// ConflictError is the error of an UpdateIf, DeleteIf or Renew whose key is present
// with another version. It matches [ErrConflict].
type ConflictError struct {
	Have Version // the version that was present
	Want Version // the version that the caller asked for
}

// Error shows both versions.
func (e *ConflictError) Error() string {
	return ErrConflict.Error() + ": have " + e.Have.text() + ", want " + e.Want.text()
}

// Unwrap returns [ErrConflict].
func (e *ConflictError) Unwrap() error { return ErrConflict }

// KeyError is the error of a [Restore] or a Replace that one key has failed.
type KeyError struct {
	Key any   // as it was given
	Err error // matches ErrInvalidKey, ErrExists, ErrNotUnique, ErrInvalidVersion or ErrTooManyRetries, or is the error of Config.Check
}

// Error shows the key and what failed.
func (e *KeyError) Error() string { return fmt.Sprintf("%v: %v", e.Err, e.Key) }

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// UniqueError is the error of a method that would have given a unique value to a second key. It
// matches [ErrNotUnique], and not [ErrExists].
type UniqueError struct {
	Index string // the index
	Value string // the value
	Key   any    // the other key, as it is stored
}

// Error shows the index, the value and the key that has it.
func (e *UniqueError) Error() string {
	return fmt.Sprintf("%v: %s %q by %v", ErrNotUnique, e.Index, e.Value, e.Key)
}

// Unwrap returns [ErrNotUnique].
func (e *UniqueError) Unwrap() error { return ErrNotUnique }

// CompactedError is the error that ends a loop over WatchFrom for which Config.History was too
// small. It matches [ErrCompacted].
type CompactedError struct {
	Revision Revision // the last change that the loop has read, or the one that it was given
	Oldest   Revision // from this one on a loop could begin when the error was made
}

// Error shows both revisions.
func (e *CompactedError) Error() string {
	return fmt.Sprintf("%v: have read up to %d, changes up to %d are forgotten", ErrCompacted, e.Revision, e.Oldest)
}

// Unwrap returns [ErrCompacted].
func (e *CompactedError) Unwrap() error { return ErrCompacted }

// UnknownRevisionError is the error of a WatchFrom with a revision that is none of the
// registry's. It matches [ErrUnknownRevision].
type UnknownRevisionError struct {
	Revision Revision // that the caller asked for
}

// Error shows the revision.
func (e *UnknownRevisionError) Error() string {
	return fmt.Sprintf("%v: %d", ErrUnknownRevision, e.Revision)
}

// Unwrap returns [ErrUnknownRevision].
func (e *UnknownRevisionError) Unwrap() error { return ErrUnknownRevision }
