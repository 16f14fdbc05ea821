package changeset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/values"
)

// recordHeader has a record, as JSON, in each of its messages.
const recordHeader = "Changeset-Record"

// Kind says which call an Event comes from.
type Kind string

const (
	Claimed  Kind = "claimed"  // Store.Claim
	Started  Kind = "started"  // Store.Start
	Appended Kind = "appended" // Store.Append
	Sealed   Kind = "sealed"   // Store.Seal
	Aborted  Kind = "aborted"  // Store.Abort
	Applied  Kind = "applied"  // Store.Applied
	Pruned   Kind = "pruned"   // Store.Prune

	// wish is of a message that says nothing: it fences a writer that keeps a claim out. It has
	// no line, and is no event.
	wish Kind = "wish"
)

// record is what one call says, but for its body: the entries of an append, and the
// reason of an abort. Fields that do not belong to its Kind are zero.
type record struct {
	Line     uint64 `json:"line"` // of the message in the trail
	Kind     Kind   `json:"kind"`
	Holder   string `json:"holder,omitempty"`   // of a claim
	Ordinal  uint64 `json:"ordinal,omitempty"`  // of the changeset
	ID       string `json:"id,omitempty"`       // of the changeset
	Previous string `json:"previous,omitempty"` // of a start: the changeset before; of a claim: the token before
	Len      int    `json:"len,omitempty"`      // entries of an append; of a seal's manifest
	First    uint64 `json:"first,omitempty"`    // Seq of an append's first entry
	Last     uint64 `json:"last,omitempty"`     // Seq of an append's last entry; of a seal's manifest
	Next     uint64 `json:"next,omitempty"`     // of applied; of a prune: the ordinal that is kept
	Part     int    `json:"part,omitempty"`     // from 1, if the record has several messages
	Parts    int    `json:"parts,omitempty"`
}

// message is a message of the stream.
type message struct {
	seq     uint64
	subject string
	record
	data []byte
}

// parse returns the message with a sequence. It fails with ErrForeign if no Store has
// published it.
func parse(seq uint64, subject string, header nats.Header, data []byte) (*message, error) {
	m := &message{seq: seq, subject: subject, data: data}
	text := header.Get(recordHeader)
	if text == "" {
		return nil, fmt.Errorf("%w: message %d has no header %s", ErrForeign, seq, recordHeader)
	}
	if err := json.Unmarshal([]byte(text), &m.record); err != nil {
		return nil, fmt.Errorf("%w: header of message %d: %w", ErrForeign, seq, err)
	}
	if m.Line == 0 != (m.Kind == wish) || m.Part < 0 || m.Part > m.Parts || m.Parts == 1 || m.Part == 0 && m.Parts > 0 || m.Len < 0 {
		return nil, fmt.Errorf("%w: header of message %d has impossible numbers", ErrForeign, seq)
	}
	return m, nil
}

// entry is an encoded entry.
type entry struct {
	seq   uint64
	value []byte
}

// appendEntry writes an entry as the body of an append has it: a line with the Seq and
// the number of bytes, the bytes, and a newline. So text stays readable.
func appendEntry(body []byte, e entry) []byte {
	body = strconv.AppendUint(body, e.seq, 10)
	body = append(body, ' ')
	body = strconv.AppendInt(body, int64(len(e.value)), 10)
	body = append(body, '\n')
	body = append(body, e.value...)
	return append(body, '\n')
}

// parseEntries calls fn with the entries of an append, in order. It fails with ErrCorrupt
// if they are not those that the record announces.
func parseEntries(e *event, fn func(entry) error) error {
	n, next := 0, e.First
	for body := e.body; len(body) > 0; n++ {
		head, rest, ok := bytes.Cut(body, []byte{'\n'})
		number, length, ok2 := bytes.Cut(head, []byte{' '})
		seq, err := strconv.ParseUint(string(number), 10, 62)
		size, err2 := strconv.ParseInt(string(length), 10, 48)
		if !ok || !ok2 || err != nil || err2 != nil || size < 0 || int64(len(rest)) <= size || rest[size] != '\n' || seq < next || seq > e.Last || n == 0 && seq != e.First {
			return fmt.Errorf("%w: line %d: entry %d is not as it was written", ErrCorrupt, e.Line, n)
		}
		if err := fn(entry{seq, rest[:size:size]}); err != nil {
			return err
		}
		body, next = rest[size+1:], seq+1
	}
	if n != e.Len || next != e.Last+1 {
		return fmt.Errorf("%w: line %d has %d entries, and should have %d", ErrCorrupt, e.Line, n, e.Len)
	}
	return nil
}

// decodeAll appends the entries of an append to entries.
func decodeAll[E any](v values.Values[E], e *event, entries []cowchangeset.Entry[E]) ([]cowchangeset.Entry[E], error) {
	err := parseEntries(e, func(one entry) error {
		value, err := v.Decode(e.ID, one.seq, one.value)
		if err != nil {
			return err
		}
		entries = append(entries, cowchangeset.Entry[E]{Seq: one.seq, Value: value})
		return nil
	})
	return entries, err
}
