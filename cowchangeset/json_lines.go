package cowchangeset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// exportBuffer is how many bytes WriteJSONLines collects before it writes them,
// but for the line that goes beyond: enough to make a system call's cost small
// beside that of encoding what it writes.
const exportBuffer = 32 << 10

// Exported is an entry as a line of JSON has it.
type Exported[E any] struct {
	Receipt
	Value E
}

// jsonLine has the names, and the order, of what is in a line.
type jsonLine[E any] struct {
	ChangesetID string `json:"changeset"`
	Ordinal     uint64 `json:"ordinal"`
	Seq         uint64 `json:"seq"`
	Value       E      `json:"value"`
}

// WriteJSONLines writes the entries in order, one JSON object on each line:
//
//	{"changeset":"plan-1","ordinal":1,"seq":0,"value":{"table":"users"}}
//
// Values are encoded by encoding/json, which replaces what is not valid UTF-8 in
// strings by U+FFFD. Lines are written several at a time, from a buffer of 32 KiB
// and one line. Nobody who records waits for any of it: a trail does not change,
// so that what one export wrote is where that of a later trail begins, unless
// Prune was called in between.
//
// If a value cannot be encoded, the lines before it are written, and the error
// names its receipt and wraps encoding/json's. It wraps w's if w fails, which
// may leave a part of a line. WriteJSONLines panics if w is nil.
func (t Trail[E]) WriteJSONLines(w io.Writer) error {
	if w == nil {
		panic("cowchangeset: Trail.WriteJSONLines called with a nil writer")
	}
	var lines bytes.Buffer
	flush := func() error {
		if _, err := lines.WriteTo(w); err != nil {
			return fmt.Errorf("cowchangeset: writing the trail: %w", err)
		}
		return nil
	}
	encoder := json.NewEncoder(&lines) // which writes whole lines or nothing
	for r, e := range t.All() {
		if err := encoder.Encode(jsonLine[E]{r.ChangesetID, r.Ordinal, r.Seq, e}); err != nil {
			err = fmt.Errorf("cowchangeset: entry %d of changeset %q (number %d): %w", r.Seq, r.ChangesetID, r.Ordinal, err)
			return errors.Join(err, flush())
		}
		if lines.Len() >= exportBuffer {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// ReadJSONLines yields the entries that WriteJSONLines wrote to r, or an error
// that names the line, after which it ends; a line that ends early is an
// io.ErrUnexpectedEOF. It reads ahead, so it is good for one loop. It panics if r
// is nil.
func ReadJSONLines[E any](r io.Reader) iter.Seq2[Exported[E], error] {
	if r == nil {
		panic("cowchangeset: ReadJSONLines called with a nil reader")
	}
	return func(yield func(Exported[E], error) bool) {
		decoder := json.NewDecoder(r)
		for n := 1; ; n++ {
			var line jsonLine[E]
			err := decoder.Decode(&line)
			if err == io.EOF {
				return
			}
			if err == nil && line.Ordinal == 0 {
				err = errors.New("it has no ordinal")
			}
			if err != nil {
				yield(Exported[E]{}, fmt.Errorf("cowchangeset: line %d: %w", n, err))
				return
			}
			if !yield(Exported[E]{Receipt{line.ChangesetID, line.Ordinal, line.Seq}, line.Value}, nil) {
				return
			}
		}
	}
}
