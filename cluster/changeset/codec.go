package changeset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Codec encodes the values of entries. Its methods run on many goroutines at once.
type Codec[E any] interface {
	// Encode returns e as bytes, which the store does not change.
	Encode(e E) ([]byte, error)

	// Decode returns the value of bytes that Encode has returned, of this or an earlier
	// version of the program. It must neither change nor keep them.
	Decode(encoded []byte) (E, error)
}

// JSON is the Codec that uses encoding/json. What encoding/json does not keep, such as
// fields that are not exported, is lost. Numbers in an any are decoded as json.Number, and
// so as they were.
type JSON[E any] struct{}

// Encode returns e as JSON.
func (JSON[E]) Encode(e E) ([]byte, error) { return json.Marshal(e) }

// Decode returns the value of JSON.
func (JSON[E]) Decode(encoded []byte) (e E, err error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber() // a float64 has other numbers above 2^53
	if err = d.Decode(&e); err != nil {
		return e, err
	}
	if _, err := d.Token(); err != io.EOF {
		return e, errors.New("json: there is something after the value")
	}
	return e, nil
}

// encode returns e as a body has it.
func (s *Store[E]) encode(e E) ([]byte, error) {
	encoded, err := s.codec.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrValue, err)
	}
	if len(encoded) > s.maxEntry {
		return nil, fmt.Errorf("%w: %d bytes, more than Options.MaxEntry, which is %d", ErrValue, len(encoded), s.maxEntry)
	}
	return encoded, nil
}

// maxID bounds the bytes of an ID: a record has two, and must fit into the 64 KiB of a
// message's header, with up to six bytes of JSON for each.
const maxID = 1024

// badID reports whether a record would not keep an ID.
func badID(s string) bool { return len(s) > maxID || !utf8.ValidString(s) }

// textual returns s with U+FFFD for bytes that are not UTF-8.
func textual(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
