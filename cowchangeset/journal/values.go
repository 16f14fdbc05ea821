package journal

import "github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"

// CorruptError says at which place a journal is not as it was written. It has the fields
// File (the name of the segment), Line (its number in the journal, whose first line is 1),
// Offset (of the line's first byte, in the file; everything before it is good) and Reason.
type CorruptError = chain.CorruptError

// DecodeError names an entry that could not be decoded, which an Upcast can fix. It has
// the fields Journal (the path), Line, ChangesetID, Seq and Err, which it wraps.
type DecodeError = chain.DecodeError

// Gap is a damaged segment that was taken out of a journal. It has the fields Segment (its
// number), Ordinal (if not 0, changesets up to this one may be lost as a whole), SHA256 (of
// its file, in hexadecimal; empty if there was none) and Reason (what was wrong with it).
type Gap = chain.Gap

// Value is an entry as it was written, and its place: ChangesetID, Seq and JSON.
type Value = chain.Value

// Anchor is a line of a journal and its hash, in the fields Line and Hash. Two journals
// that have one in common have the same lines up to there. The zero Anchor is before the
// first line. Its method String returns a text for ParseAnchor.
type Anchor = chain.Anchor

// ParseAnchor returns the Anchor of a text that String has made.
func ParseAnchor(text string) (Anchor, error) { return chain.ParseAnchor(text) }
