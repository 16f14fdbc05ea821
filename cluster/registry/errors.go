package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

// The errors of package shardedregistry, which have the same meaning here.
var (
	// ErrExists reports that a key is present. The error returned is an [*ExistsError].
	ErrExists = shardedregistry.ErrExists
	// ErrNotFound reports that a key is absent.
	ErrNotFound = shardedregistry.ErrNotFound
	// ErrConflict reports that a key does not have the version that the caller has
	// asked for. The error returned is a [*ConflictError].
	ErrConflict = shardedregistry.ErrConflict
	// ErrInvalidKey reports a key that is too long for the bucket, or that Config.Normalize
	// rejects: then the error matches that of Normalize, too.
	ErrInvalidKey = shardedregistry.ErrInvalidKey
)

var (
	// ErrUnknown reports that a write was sent and that no answer came before the
	// context ended, or none that the leader of the bucket must have given. It may have taken effect, may still do so, or may not. It
	// takes effect at most once, and only if its key has not changed meanwhile.
	// The error matches the cause of the context, too.
	ErrUnknown = errors.New("registry: the outcome of the write is not known")
	// ErrUnavailable reports that the bucket could not be reached before the
	// context ended, and that nothing was stored. The error matches the cause of
	// the context, too.
	ErrUnavailable = errors.New("registry: the bucket cannot be reached")
	// ErrBehind reports that a write was stored, and that the context ended before
	// the mirror had it. What the method returns besides the error is valid.
	ErrBehind = errors.New("registry: stored, but the mirror does not have it yet")
	// ErrStale reports that the mirror may be older than Config.MaxLag.
	ErrStale = errors.New("registry: the mirror may be stale")
	// ErrForeign reports a key whose value in the bucket cannot be decoded. Put
	// overwrites it; no other method changes it.
	ErrForeign = errors.New("registry: the bucket holds a value that is not decoded")
	// ErrTooLarge reports a value that is too large for the server or the bucket.
	ErrTooLarge = errors.New("registry: value too large")
	// ErrFull reports that the MaxBytes of the bucket have no room for a write. See "Limits".
	ErrFull = errors.New("registry: the bucket is full")
	// ErrNoTTL reports that the bucket does not let keys expire with a marker: it
	// needs LimitMarkerTTL and a History of 1.
	ErrNoTTL = errors.New("registry: the bucket has no LimitMarkerTTL, or a History above 1")
	// ErrUnsuitable reports a bucket that cannot be mirrored exactly.
	ErrUnsuitable = errors.New("registry: unsuitable bucket")
	// ErrClosed reports that the registry was closed, or its connection: then the error
	// matches nats.ErrConnectionClosed, too.
	ErrClosed = errors.New("registry: closed")
)

type (
	// ExistsError is the error of a Create whose key is present.
	ExistsError = shardedregistry.ExistsError
	// ConflictError is the error of an UpdateIf or DeleteIf whose key does not have
	// the version asked for. Have is the version that the mirror shows then.
	ConflictError = shardedregistry.ConflictError
)

// conflict is the answer of the bucket to a write whose condition does not hold. Last is the revision
// of the key that the answering server has.
type conflict struct{ last uint64 }

func (c *conflict) Error() string { return fmt.Sprintf("registry: the key is at revision %d", c.last) }

// needContext panics if a method is called with a nil context.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("registry: " + method + " called with a nil context")
	}
}
