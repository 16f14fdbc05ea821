// Package values has what stores of changesets share: how they encode the values of entries.
package values

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
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

// DecodeError names an entry that the codec could not decode.
type DecodeError struct {
	ChangesetID string
	Seq         uint64
	Err         error
}

// Error names the entry and the reason.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("entry %d of changeset %q: %v", e.Seq, e.ChangesetID, e.Err)
}

// Unwrap returns the codec's error.
func (e *DecodeError) Unwrap() error { return e.Err }

// DefaultMax is the largest number of bytes of an encoded value where none is given.
const DefaultMax = 16 << 20

// Values encodes and decodes the values of a store.
type Values[E any] struct {
	codec   Codec[E]
	sure    bool  // the codec decodes whatever it encodes
	max     int   // bytes
	refusal error // that of the store, for a value that it cannot keep
}

// Of returns the Values of a codec, or of JSON if that is nil. Max is Options.MaxEntry.
func Of[E any](codec Codec[E], max int, refusal error) Values[E] {
	v := Values[E]{codec: codec, max: cmp.Or(max, DefaultMax), refusal: refusal}
	if codec == nil {
		v.codec, v.sure = JSON[E]{}, plain(reflect.TypeFor[E]())
	}
	return v
}

// Encode returns e as the store keeps it: never nil.
func (v Values[E]) Encode(e E) ([]byte, error) {
	encoded, err := v.codec.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", v.refusal, err)
	}
	if len(encoded) > v.max {
		return nil, fmt.Errorf("%w: %d bytes, more than Options.MaxEntry, which is %d", v.refusal, len(encoded), v.max)
	}
	if encoded == nil {
		encoded = []byte{}
	}
	return encoded, nil
}

// Decode returns the value of an entry, or a *DecodeError.
func (v Values[E]) Decode(id string, seq uint64, encoded []byte) (E, error) {
	e, err := v.codec.Decode(encoded)
	if err != nil {
		err = &DecodeError{ChangesetID: id, Seq: seq, Err: err}
	}
	return e, err
}

// Validate returns an error if the store would refuse to keep e, or could not decode it.
func (v Values[E]) Validate(e E) error {
	encoded, err := v.Encode(e)
	if err != nil || v.sure {
		return err
	}
	if _, err := v.codec.Decode(encoded); err != nil {
		return fmt.Errorf("%w: it does not decode: %w", v.refusal, err)
	}
	return nil
}
