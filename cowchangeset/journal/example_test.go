package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

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
