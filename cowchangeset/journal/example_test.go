package journal_test

import (
	"context"
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
		NewID: func() string { return "plan-7" },
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
func ExampleVerifyFrom() {
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

	report, err := journal.VerifyFrom(path, anchor)
	fmt.Println(report.Lines, "lines,", report.Changesets, "changeset,", report.Entries, "entry,", err)
	anchor.Hash = strings.Repeat("0", 64)
	_, err = journal.VerifyFrom(path, anchor)
	fmt.Println(strings.Contains(err.Error(), "corrupt at line 2"))
	// Output:
	// 3 lines, 1 changeset, 1 entry, <nil>
	// true
}
