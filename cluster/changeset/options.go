package changeset

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/values"
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

// Codec encodes the values of entries. Its methods, Encode and Decode, run on many
// goroutines at once. Decode gets what Encode of this or an earlier version of the program has
// returned, and must neither change nor keep it.
type Codec[E any] = values.Codec[E]

// JSON is the Codec that uses encoding/json. What encoding/json does not keep, such as
// fields that are not exported, is lost. Numbers in an any are decoded as json.Number, and
// so as they were.
type JSON[E any] = values.JSON[E]

// DecodeError names an entry that the codec could not decode, by its ChangesetID and Seq,
// and has the codec's Err.
type DecodeError = values.DecodeError

// maxID bounds the bytes of an ID: a record has two, and must fit into the 64 KiB of a
// message's header, with up to six bytes of JSON for each.
const maxID = 1024

// badID reports whether a record would not keep an ID.
func badID(s string) bool { return len(s) > maxID || !utf8.ValidString(s) }

// textual returns s with U+FFFD for bytes that are not UTF-8.
func textual(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
