// Package chain reads and writes the lines of journals, and keeps what they add up to.
//
// A Line is encoded and parsed in one form. A State is the sum of lines, and says which may
// come next. A Scanner reads segments line by line into a State; Load reads the entries of
// changesets; a View is segments that others may be writing.
package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Format is the version that headers name.
const Format = 1

// An Op is the kind of a line.
type Op string

const (
	OpJournal Op = "journal" // of a header
	OpStart   Op = "start"
	OpAppend  Op = "append"
	OpSeal    Op = "seal"
	OpAbort   Op = "abort"
	OpApplied Op = "applied"
	OpPrune   Op = "prune"
	OpGap     Op = "gap"
)

// A Line is the contents of one line of a journal.
type Line struct {
	Op Op
	ID string // of a changeset; of the latest one, in a header

	At, End uint64 // where it is in its segment: not in the text

	Ordinal  uint64 // of a start; of the latest changeset, in a header; of a gap: see state.lose
	Previous string // the ID of the changeset before that

	Entries []byte  // of an append: JSON objects with commas between them
	Values  []entry // the same, of one that was read
	First   uint64  // the Seq of the first of them
	Count   uint64  // how many; of a seal: as the manifest says
	Last    uint64  // the Seq of the last of them; of a seal: as the manifest says

	Reason string // of an abort; of a gap: what was wrong with the segment
	Next   uint64 // of an applied
	Before uint64 // of a prune and a header: the ordinal of the first changeset that is kept

	// These are of a header.
	Format     uint64
	Journal    string // the journal's identity
	Segment    uint64 // 1 is the first; of a gap: the one that is missing
	gaps       []Gap  // all that were declared
	changesets []Changeset

	Sum string // of a gap: the SHA-256 of the segment's file; empty if there was none
}

// An entry is one of those of an append.
type entry struct {
	seq   uint64
	value []byte // JSON
}

// A fielder reads the fields of a line, or writes them.
type fielder interface {
	number(key string, n *uint64)
	text(key string, s *string)
	flag(key string, b *bool)
	list(l *Line)       // the entries
	checkpoint(l *Line) // the gaps and the changesets
}

// fields has f go through the fields of the line between its op and prev, in
// their order. It is where the format is written down, for both directions.
func (l *Line) fields(f fielder) {
	switch l.Op {
	case OpJournal:
		f.number("format", &l.Format)
		f.text("journal", &l.Journal)
		f.number("segment", &l.Segment)
		f.number("ordinal", &l.Ordinal)
		f.text("id", &l.ID)
		f.text("previous", &l.Previous)
		f.number("before", &l.Before)
		f.checkpoint(l)
	case OpStart:
		f.text("id", &l.ID)
		f.number("ordinal", &l.Ordinal)
		f.text("previous", &l.Previous)
	case OpAppend:
		f.text("id", &l.ID)
		f.list(l)
	case OpSeal:
		f.text("id", &l.ID)
		f.number("len", &l.Count)
		f.number("last", &l.Last)
	case OpAbort:
		f.text("id", &l.ID)
		f.text("reason", &l.Reason)
	case OpApplied:
		f.text("id", &l.ID)
		f.number("next", &l.Next)
	case OpPrune:
		f.number("before", &l.Before)
	case OpGap:
		f.number("segment", &l.Segment)
		f.number("ordinal", &l.Ordinal)
		f.text("sha256", &l.Sum)
		f.text("reason", &l.Reason)
	}
}

// fields is line.fields for a gap in a header, but for its first field.
func (g *Gap) fields(f fielder) {
	f.number("ordinal", &g.Ordinal)
	f.text("sha256", &g.SHA256)
	f.text("reason", &g.Reason)
}

// fields is line.fields for a changeset in a header, but for its first field.
func (c *Changeset) fields(f fielder) {
	f.text("id", &c.ID)
	f.number("len", &c.Count)
	f.number("last", &c.Last)
	f.flag("sealed", &c.sealed)
	f.flag("aborted", &c.aborted)
	f.text("reason", &c.reason)
	f.number("applied", &c.applied)
	f.number("segment", &c.From.Segment)
	f.number("offset", &c.From.offset)
	f.number("through", &c.to.Segment)
	f.number("end", &c.to.offset)
}

// A Digest is a hash as a line has it, in hexadecimal.
type Digest [2 * sha256.Size]byte

func (d Digest) String() string { return string(d[:]) }

// NoHash is the prev of the first line.
func NoHash() (d Digest) {
	hex.Encode(d[:], make([]byte, sha256.Size))
	return d
}

// hashOf returns the hash of a line's body.
func hashOf(body []byte) (d Digest) {
	sum := sha256.Sum256(body)
	hex.Encode(d[:], sum[:])
	return d
}

// The text in a line around its fields, op and numbers.
const (
	lineKey = `{"line":`
	opKey   = `,"op":"`
	prevKey = `,"prev":"`
	hashKey = `,"hash":"`
	lineEnd = `"}`
)

// Encode appends the line as it is in the file, with its newline, and returns
// its hash.
func (l *Line) Encode(dst []byte, number int, prev Digest) (text []byte, hash Digest) {
	from := len(dst)
	e := encoder{append(dst, lineKey...)}
	e.b = strconv.AppendInt(e.b, int64(number), 10)
	e.b = append(e.b, opKey...)
	e.b = append(e.b, l.Op...)
	e.b = append(e.b, '"')
	l.fields(&e)
	e.b = append(e.b, prevKey...)
	e.b = append(e.b, prev[:]...)
	e.b = append(e.b, '"')
	hash = hashOf(e.b[from:])
	e.b = append(e.b, hashKey...)
	e.b = append(e.b, hash[:]...)
	e.b = append(e.b, lineEnd...)
	return append(e.b, '\n'), hash
}

// An encoder is a fielder that writes.
type encoder struct{ b []byte }

func (e *encoder) key(key string) {
	e.b = append(e.b, `,"`...)
	e.b = append(e.b, key...)
	e.b = append(e.b, `":`...)
}

func (e *encoder) number(key string, n *uint64) {
	e.key(key)
	e.b = strconv.AppendUint(e.b, *n, 10)
}

func (e *encoder) text(key string, s *string) {
	e.key(key)
	e.b = appendQuoted(e.b, *s)
}

func (e *encoder) flag(key string, b *bool) {
	e.key(key)
	e.b = strconv.AppendBool(e.b, *b)
}

func (e *encoder) checkpoint(l *Line) {
	e.key("gaps")
	e.b = append(e.b, '[')
	for i := range l.gaps {
		e.object(i, segmentKey, l.gaps[i].Segment, &l.gaps[i])
	}
	e.b = append(e.b, ']')
	e.key("changesets")
	e.b = append(e.b, '[')
	for i := range l.changesets {
		e.object(i, ordinalKey, l.changesets[i].Ordinal, &l.changesets[i])
	}
	e.b = append(e.b, ']')
}

// object writes object i of a list, which begins with a number.
func (e *encoder) object(i int, key string, number uint64, o interface{ fields(fielder) }) {
	if i > 0 {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, key...)
	e.b = strconv.AppendUint(e.b, number, 10)
	o.fields(e)
	e.b = append(e.b, '}')
}

func (e *encoder) list(l *Line) {
	e.key("entries")
	e.b = append(e.b, '[')
	e.b = append(e.b, l.Entries...)
	e.b = append(e.b, ']')
}

// The text in front of the first number of a gap and of a changeset in a header, and in
// an entry around its seq and its value.
const (
	segmentKey = `{"segment":`
	ordinalKey = `{"ordinal":`

	seqKey   = `{"seq":`
	valueKey = `,"value":`
)

// AppendEntry appends an entry as it is in a line.
func AppendEntry(dst []byte, seq uint64, value []byte) []byte {
	dst = append(dst, seqKey...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, valueKey...)
	dst = append(dst, value...)
	return append(dst, '}')
}

// appendQuoted appends s, which is valid UTF-8, as a JSON string. Files outlive
// encoding/json's choice of escapes, so it escapes by itself: only the bytes that need
// it, and in one way only.
func appendQuoted(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// OutOfOrder says that an entry comes too late.
func OutOfOrder(seq, last uint64) string {
	return fmt.Sprintf("seq %d comes after seq %d", seq, last)
}

// Textual returns s as it is read back from a file: bytes that are not UTF-8
// become U+FFFD, as in encoding/json.
func Textual(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
