package changeset

import (
	"context"
	"errors"
	"fmt"
)

// Compare errors with errors.Is.
var (
	// ErrStream: the stream does not exist, or its settings do not keep a trail. See
	// StreamConfig.
	ErrStream = errors.New("changeset: stream cannot keep a trail")

	// ErrClaimed: a tracker uses this Store already.
	ErrClaimed = errors.New("changeset: a tracker uses it already")

	// ErrUnclaimed: a method that writes was called without a claim. New and Resume of
	// cowchangeset claim the store.
	ErrUnclaimed = errors.New("changeset: not claimed")

	// ErrFenced: another Store, as in another process, has claimed the stream since, or is
	// about to. All calls that write fail. Make a Store and Resume anew to take the trail back.
	ErrFenced = errors.New("changeset: another process has claimed the trail")

	// ErrConflict: the call contradicts what the trail has. A tracker gets it if its
	// IDs are not unique. The same call fails again.
	ErrConflict = errors.New("changeset: call does not fit the trail")

	// ErrForeign: the stream has a message that no Store has published. The text names
	// its sequence. Remove that message, and resume. If it is the only one, make the stream
	// anew: one that is empty, and was not always, looks as if a trail had been lost.
	ErrForeign = errors.New("changeset: foreign message in the stream")

	// ErrCorrupt: the stream lacks messages, or has messages that do not fit together.
	ErrCorrupt = errors.New("changeset: trail is damaged")

	// ErrPruned: messages that a Follow wanted were purged before it has read them.
	ErrPruned = errors.New("changeset: messages are pruned")

	// ErrRewound: the stream ends before a message that it had. It was restored from a
	// backup, or made anew, or has lost messages. Resume continues with what it has.
	ErrRewound = errors.New("changeset: stream has lost messages at its end")

	// ErrUnknown: the servers have not answered before the context ended. The call may
	// have taken effect. A tracker repeats it.
	ErrUnknown = errors.New("changeset: no answer from the servers")

	// ErrValue: the codec cannot encode a value, or not so that it can be read back, or
	// its encoding is too long.
	ErrValue = errors.New("changeset: value cannot be kept")
)

// failed returns err with the name of the method.
func failed(method string, err error) error { return fmt.Errorf("changeset: %s: %w", method, err) }

// conflict returns an ErrConflict about a changeset.
func conflict(id, format string, args ...any) error {
	return fmt.Errorf("%w: changeset %q: %s", ErrConflict, id, fmt.Sprintf(format, args...))
}

// needContext panics if a method is called with a nil context.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("changeset: " + method + " called with a nil context")
	}
}
