//go:build !modelcheck

package cowchangeset_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"

	"github.com/latchfree/latchfree/cowchangeset"
)

// line is an entry in an export: one JSON object on a line.
type line[E any] struct {
	Changeset string `json:"changeset"`
	Ordinal   uint64 `json:"ordinal"`
	Seq       uint64 `json:"seq"`
	Value     E      `json:"value"`
}

// export writes a trail as lines of JSON.
func export[E any](ctx context.Context, w io.Writer, trail cowchangeset.Trail[E]) error {
	if err := trail.Fetch(ctx); err != nil { // what Resume has left in the store, if there is one
		return err
	}
	encoder := json.NewEncoder(w) // which writes a whole line or, if it cannot encode a value, nothing
	for r, e := range trail.All() {
		if err := encoder.Encode(line[E]{r.ChangesetID, r.Ordinal, r.Seq, e}); err != nil {
			return fmt.Errorf("entry %d of changeset %q: %w", r.Seq, r.ChangesetID, err)
		}
	}
	return nil
}

// A trail is exported as lines of JSON, and read back with its receipts and all digits of its
// numbers.
func Example_export() {
	type row struct {
		Table string         `json:"table"`
		Keys  map[string]any `json:"keys"`
	}
	tracker, ctx := plans[row](), context.Background()
	tracker.Start(ctx)
	tracker.Record(row{"users", map[string]any{"id": int64(1<<53 + 1)}})
	tracker.Start(ctx)
	tracker.Record(row{"orders", map[string]any{"id": uint64(1<<64 - 1)}})

	var file bytes.Buffer // of a file, a bufio.Writer
	if err := export(ctx, &file, tracker.Trail()); err != nil {
		log.Fatal(err)
	}
	fmt.Print(file.String())

	decoder := json.NewDecoder(&file)
	decoder.UseNumber() // a float64 has other numbers above 2^53
	for {
		var l line[row]
		if err := decoder.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			log.Fatal(err) // io.ErrUnexpectedEOF: the last line ends early
		}
		fmt.Println(l.Changeset, l.Seq, l.Value.Keys["id"])
	}
	// Output:
	// {"changeset":"plan-1","ordinal":1,"seq":0,"value":{"table":"users","keys":{"id":9007199254740993}}}
	// {"changeset":"plan-2","ordinal":2,"seq":0,"value":{"table":"orders","keys":{"id":18446744073709551615}}}
	// plan-1 0 9007199254740993
	// plan-2 0 18446744073709551615
}
