package cowchangeset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// exportBuffer is how many bytes WriteJSONLines collects before it writes them, not
// counting the line that exceeds it: enough to make a system call's cost small beside
// that of encoding.
const exportBuffer = 32 << 10

// Exported is an entry that was read back from a line of JSON.
type Exported[E any] struct {
	Receipt
	Value E
}

// jsonLine has the names and the order of the fields of a line.
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
// Values are encoded by encoding/json, which replaces bytes that are not UTF-8 in
// strings by U+FFFD. Lines are written several at a time, from a buffer of 32 KiB and
// one line. Recording goroutines do not wait for any of it. A trail does not change, so
// a later trail's export begins with the same lines, unless Prune was called in
// between.
//
// If a value cannot be encoded, the lines before it are written, and the error names
// its receipt and wraps encoding/json's error; and so if entries that Resume has left in
// the store cannot be read, with a *StoreError. If w fails, the error wraps w's, and a part
// of a line may have been written. WriteJSONLines panics if w is nil.
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
	var failed error
	err := t.walk(func(r Receipt, e E) bool {
		if err := encoder.Encode(jsonLine[E]{r.ChangesetID, r.Ordinal, r.Seq, e}); err != nil {
			failed = fmt.Errorf("cowchangeset: entry %d of changeset %q (number %d): %w", r.Seq, r.ChangesetID, r.Ordinal, err)
			failed = errors.Join(failed, flush())
		} else if lines.Len() >= exportBuffer {
			failed = flush()
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return errors.Join(err, flush())
}

// ReadJSONLines yields the entries that WriteJSONLines wrote to r. If it fails, it
// yields an error that names the line, and ends; a line that ends early is an
// io.ErrUnexpectedEOF. Numbers in an any are read as json.Number, and so as they were
// written. ReadJSONLines reads ahead, so it is good for one loop. It panics if r is nil.
func ReadJSONLines[E any](r io.Reader) iter.Seq2[Exported[E], error] {
	if r == nil {
		panic("cowchangeset: ReadJSONLines called with a nil reader")
	}
	return func(yield func(Exported[E], error) bool) {
		decoder := json.NewDecoder(r)
		decoder.UseNumber() // a float64 has other numbers above 2^53
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
