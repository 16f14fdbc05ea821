package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// A tracker writes to a journal; later, another process reads it.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "changes")
	ctx := context.Background()

	j, err := journal.Open[string](path, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	tracker, err := cowchangeset.New(cowchangeset.Config[string]{
		Store: j,
		NewID: func(context.Context) (string, error) { return "plan-7", nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	plan, _ := tracker.Start(ctx)
	tracker.Record("create bucket")                              // on disk when it returns
	tracker.RecordBatch([]string{"add policy", "attach policy"}) // whole or not at all
	plan.Seal(ctx)
	j.Close()

	j, err = journal.Open[string](path, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()
	for saved, err := range j.Load(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(saved.ID, "sealed:", saved.Sealed)
		for _, e := range saved.Entries {
			fmt.Println(e.Seq, e.Value)
		}
	}
	// Output:
	// plan-7 sealed: true
	// 0 create bucket
	// 1 add policy
	// 2 attach policy
}

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

	report, err := journal.Verify(path, anchor)
	fmt.Println(report.Lines, "lines,", report.Changesets, "changeset,", report.Entries, "entry,", err)
	anchor.Hash = strings.Repeat("0", 64)
	_, err = journal.Verify(path, anchor)
	fmt.Println(strings.Contains(err.Error(), "corrupt at line 2"))
	// Output:
	// 3 lines, 1 changeset, 1 entry, <nil>
	// true
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

// A Reader finds a changeset while the journal is open, and writes nothing.
func ExampleReader_Changeset() {
	j, path, remove := opened[string](journal.Options{})
	defer remove()
	ctx := context.Background()
	j.Start(ctx, cowchangeset.Header{ID: "plan-7", Ordinal: 1})
	j.Append(ctx, "plan-7", []cowchangeset.Entry[string]{{Seq: 0, Value: "create bucket"}})

	r, err := journal.OpenReader[string](path, journal.Options{})
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

	r, err := journal.OpenReader[string](path, journal.Options{PollInterval: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range r.Follow(ctx, 0) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(event.Line, event.Kind)
		if event.Kind == journal.Sealed {
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
	r, err := journal.OpenReader[change](path, journal.Options{
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
	saved, err := r.ChangesetAt(ctx, 1)
	fmt.Printf("%+v %v\n", saved.Entries[0].Value, err)
	// Output: {Action:create bucket} <nil>
}

// Segments that are about pruned changesets only are removed.
func ExampleJournal_Prune() {
	j, path, remove := opened[string](journal.Options{})
	defer remove()
	ctx := context.Background()
	previous := ""
	for n := range uint64(3) {
		id := fmt.Sprint("plan-", n+1)
		j.Start(ctx, cowchangeset.Header{ID: id, Ordinal: n + 1, Previous: previous})
		j.Seal(ctx, id, cowchangeset.Manifest{})
		j.Applied(ctx, id, cowchangeset.AllApplied)
		j.Rotate(ctx)
		previous = id
	}
	segments := func() int {
		names, _ := filepath.Glob(filepath.Join(path, "*.journal"))
		return len(names)
	}
	fmt.Println(segments(), "segments")
	fmt.Println(j.Prune(ctx, 3), segments(), "segments")
	// Output:
	// 4 segments
	// <nil> 2 segments
}

// The lines from the first damage on go to a file beside the journal.
func ExampleRepair() {
	j, path, remove := opened[string](journal.Options{})
	defer remove()
	ctx := context.Background()
	j.Start(ctx, cowchangeset.Header{ID: "plan-7", Ordinal: 1})
	j.Append(ctx, "plan-7", []cowchangeset.Entry[string]{{Seq: 0, Value: "create bucket"}})
	j.Close()

	segment := filepath.Join(path, "0000000001.journal")
	text, err := os.ReadFile(segment)
	if err != nil {
		log.Fatal(err)
	}
	os.WriteFile(segment, bytes.Replace(text, []byte("bucket"), []byte("BUCKET"), 1), 0o600)

	_, err = journal.Open[string](path, journal.Options{})
	fmt.Println(err != nil)
	cut, err := journal.Repair(path)
	fmt.Println("cut", cut.Lines, "line from line", cut.Damage.Line, "on:", err)
	fmt.Println(filepath.Match("line-3-????????.cut", filepath.Base(cut.File)))
	// Output:
	// true
	// cut 1 line from line 3 on: <nil>
	// true <nil>
}

func ExampleJournal_Validate() {
	j, _, remove := opened[any](journal.Options{MaxEntry: 20})
	defer remove()
	fmt.Println(j.Validate("create bucket"))
	fmt.Println(j.Validate("create a bucket with a long name"))
	// Output:
	// <nil>
	// journal: 34 bytes of JSON, more than Options.MaxEntry, which is 20
}

// Text is how an anchor is kept elsewhere.
func ExampleParseAnchor() {
	text := journal.Anchor{Line: 2, Hash: strings.Repeat("0f", 32)}.String()
	anchor, err := journal.ParseAnchor(text)
	fmt.Println(anchor.Line, len(anchor.Hash), err)
	// Output: 2 64 <nil>
}

// An operator sees how many lines share a write, and why the disk failed last.
func ExampleJournal_Stats() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	j, err := journal.Open[string](filepath.Join(dir, "changes"), journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{Store: j})
	tracker.Start(ctx)
	tracker.RecordBatch([]string{"add policy", "attach policy"})
	s := j.Stats()
	fmt.Println(s.Entries, "entries,", s.Lines, "lines,", s.Syncs, "fsyncs, broken:", errors.Is(s.LastError, journal.ErrBroken))
	// Output: 2 entries, 2 lines, 2 fsyncs, broken: false
}
