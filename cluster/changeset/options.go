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
}

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
	}
	return nil
}
