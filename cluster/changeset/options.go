package changeset

import (
	"fmt"
	"time"
)

// Options holds a Store's settings. Stream is required; zero values of the others mean
// their defaults.
type Options[E any] struct {
	// Stream is the name of the stream, which has this trail and nothing else. See
	// StreamConfig.
	Stream string

	// Codec encodes the values. Nil means JSON[E].
	Codec Codec[E]

	// MaxEntry is the largest number of bytes of an encoded value. Zero means 16 MiB. It
	// may be more than a message can have: a record is split as needed.
	MaxEntry int

	// Holder is part of the ErrFenced of a process that this one takes the trail from: a
	// host name, for example. UTF-8, at most 1,024 bytes; it may be empty.
	Holder string

	// AckWait is how long a message waits for its acknowledgement before it is sent
	// again, under the same ID; and any other request for its answer. Zero means a second.
	AckWait time.Duration

	// ClaimTimeout bounds a Claim. Zero means 30 seconds.
	ClaimTimeout time.Duration

	// MinReplicas is the least number of replicas of the stream that Open accepts. Zero
	// means 1. A stream with one replica is gone with its server.
	MinReplicas int

	// AllowMemory makes Open accept a stream in memory.
	AllowMemory bool

	// AllowDiscard makes Open accept a stream that drops its oldest messages, by limits
	// with DiscardOld or by MaxAge. Load fails when it has dropped some.
	AllowDiscard bool
}

// Defaults of Options.
const (
	defaultAckWait      = time.Second
	defaultClaimTimeout = 30 * time.Second
)

// validate returns an error that names the setting at fault.
func (o Options[E]) validate() error {
	switch {
	case o.Stream == "":
		return fmt.Errorf("changeset: Options.Stream %q: must not be empty", o.Stream)
	case o.MaxEntry < 0:
		return fmt.Errorf("changeset: Options.MaxEntry %d: must not be negative", o.MaxEntry)
	case badID(o.Holder):
		return fmt.Errorf("changeset: Options.Holder %q: must be UTF-8, at most %d bytes", o.Holder, maxID)
	case o.AckWait < 0:
		return fmt.Errorf("changeset: Options.AckWait %v: must not be negative", o.AckWait)
	case o.ClaimTimeout < 0:
		return fmt.Errorf("changeset: Options.ClaimTimeout %v: must not be negative", o.ClaimTimeout)
	case o.MinReplicas < 0:
		return fmt.Errorf("changeset: Options.MinReplicas %d: must not be negative", o.MinReplicas)
	}
	return nil
}
