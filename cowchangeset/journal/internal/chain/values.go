package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Values converts entries to JSON and back.
type Values[E any] struct {
	sure bool // all values that can be encoded can be decoded
	max  int  // Options.MaxEntry
}

// ValuesOf returns an error if no E can be kept.
func ValuesOf[E any](maxEntry int) (Values[E], error) {
	sure, refused := readable(reflect.TypeFor[E]())
	if refused != "" {
		return Values[E]{}, fmt.Errorf("journal: a %T cannot be kept: %s", *new(E), refused)
	}
	return Values[E]{sure, maxEntry}, nil
}

// Encode returns e as it is in a line, and an error if it could not be read back.
// It runs user code.
func (v Values[E]) Encode(buf *bytes.Buffer, e E) ([]byte, error) {
	buf.Reset()
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	switch {
	case len(text) > v.max:
		return nil, fmt.Errorf("%d bytes of JSON, more than Options.MaxEntry, which is %d", len(text), v.max)
	case !utf8.Valid(text): // as raw JSON may be
		return nil, errors.New("its JSON is not UTF-8")
	case tooDeep(text):
		return nil, errors.New("json: nested too deeply to be read back")
	}
	if !v.sure {
		var d Decoder[E]
		if _, err := d.decode(Value{JSON: text}); err != nil {
			return nil, fmt.Errorf("it could not be read back: %w", err)
		}
	}
	return text, nil
}

// MaxSeq is beyond the Seqs that a tracker gives and takes back.
const MaxSeq = 1 << 62

// tooDeep reports whether encoding/json would refuse to read a value, because of
// its limit on nesting, which it has for reading only.
func tooDeep(value []byte) bool {
	const surelyFine = 9000 // the limit is 10,000
	if bytes.Count(value, []byte("{"))+bytes.Count(value, []byte("[")) <= surelyFine {
		return false
	}
	around := append([]byte("[[["), value...) // the line, its entries, the entry
	return !json.Valid(append(around, "]]]"...))
}

// Value is an entry as it was written, and its place.
type Value struct {
	ChangesetID string
	Seq         uint64
	JSON        json.RawMessage
}

// A Decoder makes entries of JSON. Numbers in an any become json.Number: so that
// they are what they were, which a float64 is only up to 2^53.
type Decoder[E any] struct {
	Upcast  func(Value) (json.RawMessage, error)
	json    *json.Decoder
	text    bytes.Reader
	decoded int64 // the end of the last value, in the input of json
}

// decode decodes one value. It runs user code.
func (d *Decoder[E]) decode(v Value) (e E, err error) {
	if d.Upcast != nil {
		if v.JSON, err = d.Upcast(v); err != nil {
			return e, fmt.Errorf("Options.Upcast: %w", err)
		}
		v.JSON = bytes.TrimSpace(v.JSON)
	}
	if d.json == nil {
		d.json, d.decoded = json.NewDecoder(&d.text), 0
		d.json.UseNumber()
	}
	whole := false
	defer func() {
		if !whole {
			d.json = nil // or its unread input would be mixed up with the next value
		}
	}()
	d.text.Reset(v.JSON)
	if err := d.json.Decode(&e); err != nil {
		return e, err
	}
	end := d.decoded + int64(len(v.JSON))
	if d.json.InputOffset() != end {
		return e, errors.New("json: there is something after the value")
	}
	d.decoded, whole = end, true
	return e, nil
}

// AppendAll appends the entries of a line of a journal. It runs user code.
func (d *Decoder[E]) AppendAll(to []cowchangeset.Entry[E], path string, number int, l *Line) ([]cowchangeset.Entry[E], error) {
	for _, e := range l.Values {
		v, err := d.decode(Value{ChangesetID: l.ID, Seq: e.seq, JSON: e.value})
		if err != nil {
			return to, &DecodeError{Journal: path, Line: number, ChangesetID: l.ID, Seq: e.seq, Err: err}
		}
		to = append(to, cowchangeset.Entry[E]{Seq: e.seq, Value: v})
	}
	return to, nil
}
