package changeset

import (
	"strings"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/values"
)

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
