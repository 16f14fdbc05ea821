package reader_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
)

// Anybody can check a journal, without the type of its entries, and see that what
// was there earlier still is as it was.
func ExampleVerify() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "changes")
	j, err := journal.Open[string](path, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	j.Start(ctx, cowchangeset.Header{ID: "plan-7", Ordinal: 1})
	anchor := j.Hash() // to be kept elsewhere
	j.Append(ctx, "plan-7", []cowchangeset.Entry[string]{{Seq: 0, Value: "create bucket"}})
	j.Close()

	report, err := reader.Verify(path, anchor)
	fmt.Println(report.Lines, "lines,", report.Changesets, "changeset,", report.Entries, "entry,", err)
	anchor.Hash = strings.Repeat("0", 64)
	_, err = reader.Verify(path, anchor)
	fmt.Println(strings.Contains(err.Error(), "corrupt at line 2"))
	// Output:
	// 3 lines, 1 changeset, 1 entry, <nil>
	// true
}

// A Reader finds a changeset while the journal is open, and writes nothing.
func ExampleReader_Changeset() {
	j, path, remove := opened[string](journal.Options{})
	defer remove()
	ctx := context.Background()
	j.Start(ctx, cowchangeset.Header{ID: "plan-7", Ordinal: 1})
	j.Append(ctx, "plan-7", []cowchangeset.Entry[string]{{Seq: 0, Value: "create bucket"}})

	r, err := reader.Open[string](path, reader.Options{})
	if err != nil {
		log.Fatal(err)
	}
	saved, err := r.Changeset(ctx, "plan-7")
	fmt.Println(saved.Entries[0].Value, saved.Sealed, err)
	_, err = r.Changeset(ctx, "plan-8")
	fmt.Println(err)
	// Output:
	// create bucket false <nil>
	// journal: no such changeset: "plan-8"
}

// A follower yields each line that comes, until its context ends.
func ExampleReader_Follow() {
	j, path, remove := opened[string](journal.Options{})
	defer remove()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		j.Start(ctx, cowchangeset.Header{ID: "plan-7", Ordinal: 1})
		j.Append(ctx, "plan-7", []cowchangeset.Entry[string]{{Seq: 0, Value: "create bucket"}})
		j.Seal(ctx, "plan-7", cowchangeset.Manifest{Len: 1})
	}()

	r, err := reader.Open[string](path, reader.Options{PollInterval: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range r.Follow(ctx, 0) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(event.Line, event.Kind)
		if event.Kind == reader.Sealed {
			cancel()
		}
	}
	// Output:
	// 1 rotated
	// 2 started
	// 3 appended
	// 4 sealed
	// context canceled
}

// Values that an older program has written are converted as they are read.
func ExampleOptions_upcast() {
	j, path, remove := opened[string](journal.Options{})
	defer remove()
	ctx := context.Background()
	j.Start(ctx, cowchangeset.Header{ID: "plan-7", Ordinal: 1})
	j.Append(ctx, "plan-7", []cowchangeset.Entry[string]{{Seq: 0, Value: "create bucket"}})

	type change struct{ Action string }
	r, err := reader.Open[change](path, reader.Options{
		Upcast: func(v journal.Value) (json.RawMessage, error) {
			if v.JSON[0] == '{' {
				return v.JSON, nil
			}
			return json.RawMessage(`{"Action":` + string(v.JSON) + `}`), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	saved, err := r.Changeset(ctx, "plan-7")
	fmt.Printf("%+v %v\n", saved.Entries[0].Value, err)
	// Output: {Action:create bucket} <nil>
}

// opened returns a journal in a directory of its own, its path, and what removes both.
func opened[E any](o journal.Options) (*journal.Journal[E], string, func()) {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "changes")
	j, err := journal.Open[E](path, o)
	if err != nil {
		log.Fatal(err)
	}
	return j, path, func() {
		j.Close()
		os.RemoveAll(dir)
	}
}
