package sqlstore

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

// DecodeError names an entry in the tables that the codec could not decode, by its ChangesetID and Seq,
// and has the codec's Err.
type DecodeError = values.DecodeError

// maxID bounds the bytes of an ID, so that PostgreSQL can index it.
const maxID = 1024

// badText reports whether a database would not keep s.
func badText(s string, most int) bool {
	return len(s) > most || !utf8.ValidString(s) || strings.Contains(s, "\x00")
}

// textual returns s with the parts replaced that a database would not keep.
func textual(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
