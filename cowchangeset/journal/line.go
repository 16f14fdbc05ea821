package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// format is the version that a header names.
const format = 1

// What a line can say. The first is the header's.
const (
	opJournal = "journal"
	opStart   = "start"
	opAppend  = "append"
	opSeal    = "seal"
	opAbort   = "abort"
	opApplied = "applied"
)

// A line is what one line of the file says.
type line struct {
	op string
	id string

	ordinal  uint64 // of a start
	previous string

	entries []byte // of an append: JSON objects with commas between them
	first   uint64 // the Seq of the first of them
	values  []entry

	count int    // of an append: the number of entries; of a seal: the manifest's
	last  uint64 // the Seq of the last of them

	reason string // of an abort

	next uint64 // of an applied
}

// An entry is one of those of an append.
type entry struct {
	Seq   uint64          `json:"seq"`
	Value json.RawMessage `json:"value"`
}

// noHash is what the first line has as the hash of the line before it.
func noHash() string { return strings.Repeat("0", sha256.Size*2) }

// header returns the first line, which is the same in all files.
func header() []byte {
	text, _ := (&line{op: opJournal}).encode(nil, 1, noHash())
	return text
}

// encode appends the line as it is in the file, with its newline, and returns
// its hash.
func (l *line) encode(dst []byte, number int, prev string) (text []byte, hash string) {
	from := len(dst)
	dst = l.body(dst, number, prev)
	hash = hashOf(dst[from:])
	dst = append(dst, hashKey...)
	dst = append(dst, hash...)
	return append(dst, "\"}\n"...), hash
}

const hashKey = `,"hash":"`

// hashOf returns the hash of a line's body.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// body appends what the line's hash is about.
func (l *line) body(dst []byte, number int, prev string) []byte {
	dst = append(dst, `{"line":`...)
	dst = strconv.AppendInt(dst, int64(number), 10)
	dst = append(dst, `,"op":"`...)
	dst = append(dst, l.op...)
	dst = append(dst, '"')
	if l.op == opJournal {
		dst = append(dst, `,"format":`...)
		dst = strconv.AppendInt(dst, format, 10)
	} else {
		dst = append(dst, `,"id":`...)
		dst = appendQuoted(dst, l.id)
	}
	switch l.op {
	case opStart:
		dst = append(dst, `,"ordinal":`...)
		dst = strconv.AppendUint(dst, l.ordinal, 10)
		dst = append(dst, `,"previous":`...)
		dst = appendQuoted(dst, l.previous)
	case opAppend:
		dst = append(dst, `,"entries":[`...)
		dst = append(dst, l.entries...)
		dst = append(dst, ']')
	case opSeal:
		dst = append(dst, `,"len":`...)
		dst = strconv.AppendInt(dst, int64(l.count), 10)
		dst = append(dst, `,"last":`...)
		dst = strconv.AppendUint(dst, l.last, 10)
	case opAbort:
		dst = append(dst, `,"reason":`...)
		dst = appendQuoted(dst, l.reason)
	case opApplied:
		dst = append(dst, `,"next":`...)
		dst = strconv.AppendUint(dst, l.next, 10)
	}
	dst = append(dst, `,"prev":"`...)
	dst = append(dst, prev...)
	return append(dst, '"')
}

// appendQuoted appends s, which is valid UTF-8, as a JSON string. Files outlive
// encoding/json's choice of what to escape, so it is made here: what must be, and
// in one way only.
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

// appendEntry appends an entry as it is in a line, before another if more.
func appendEntry(dst []byte, seq uint64, value []byte) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, `,"value":`...)
	dst = append(dst, value...)
	return append(dst, '}')
}

// fields are those of all kinds of lines.
type fields struct {
	Line     int     `json:"line"`
	Op       string  `json:"op"`
	Format   int     `json:"format"`
	ID       string  `json:"id"`
	Ordinal  uint64  `json:"ordinal"`
	Previous string  `json:"previous"`
	Entries  []entry `json:"entries"`
	Len      int     `json:"len"`
	Last     uint64  `json:"last"`
	Reason   string  `json:"reason"`
	Next     uint64  `json:"next"`
	Prev     string  `json:"prev"`
}

// decode reads a line without its newline. It accepts what encode makes of the
// line it returns, byte by byte, and nothing else; for that it returns why.
func decode(text []byte, number int, prev string) (l *line, hash, why string) {
	body, hash, ok := cutHash(text)
	switch {
	case !ok:
		return nil, "", "there is no hash at its end"
	case hash != hashOf(body):
		return nil, "", "its hash is not that of its bytes"
	}
	var f fields
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, "", "not JSON as in a journal: " + err.Error()
	}
	switch {
	case f.Line != number:
		return nil, "", fmt.Sprintf("it says that it is line %d", f.Line)
	case f.Prev != prev:
		return nil, "", "its prev is not the hash of the line before it"
	case f.Op == opJournal && f.Format != format:
		return nil, "", fmt.Sprintf("the file has format %d, and not %d", f.Format, format)
	}
	l = &line{op: f.Op, id: f.ID, ordinal: f.Ordinal, previous: f.Previous, count: f.Len, last: f.Last, reason: f.Reason, next: f.Next}
	switch f.Op {
	case opJournal, opStart, opSeal, opAbort, opApplied:
	case opAppend:
		if why := l.take(f.Entries); why != "" {
			return nil, "", why
		}
	default:
		return nil, "", fmt.Sprintf("unknown op %q", f.Op)
	}
	if !bytes.Equal(l.body(make([]byte, 0, len(body)), number, prev), body) {
		return nil, "", "not as a journal writes it"
	}
	return l, hash, ""
}

// take makes the line an append of entries that were read, or returns why not.
func (l *line) take(entries []entry) (why string) {
	if len(entries) == 0 {
		return "it has no entries"
	}
	size := 0
	for _, e := range entries {
		size += len(e.Value) + 32
	}
	l.entries = make([]byte, 0, size)
	for i, e := range entries {
		if i > 0 {
			if e.Seq <= l.last {
				return outOfOrder(e.Seq, l.last)
			}
			l.entries = append(l.entries, ',')
		}
		l.entries = appendEntry(l.entries, e.Seq, e.Value)
		l.last = e.Seq
	}
	l.first, l.count, l.values = entries[0].Seq, len(entries), entries
	return ""
}

func outOfOrder(seq, last uint64) string {
	return fmt.Sprintf("seq %d comes after seq %d", seq, last)
}

// cutHash splits a line into what its hash is about and the hash.
func cutHash(text []byte) (body []byte, hash string, ok bool) {
	text, ok = bytes.CutSuffix(text, []byte(`"}`))
	if n := len(text) - sha256.Size*2; ok && n >= 0 {
		body, ok = bytes.CutSuffix(text[:n], []byte(hashKey))
		return body, string(text[n:]), ok
	}
	return nil, "", false
}

// textual returns s as it is read back from a file: bytes that are not UTF-8
// become U+FFFD, as in encoding/json.
func textual(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
