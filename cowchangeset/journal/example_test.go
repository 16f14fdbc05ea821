package journal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

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
	path := filepath.Join(dir, "changes.journal")
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

// Anybody can check a file, without the type of its entries.
func ExampleVerify() {
	file, err := os.CreateTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	file.Close()
	defer os.Remove(file.Name())
	j, err := journal.Open[string](file.Name(), journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	j.Start(ctx, cowchangeset.Header{ID: "plan-7", Ordinal: 1})
	j.Append(ctx, "plan-7", []cowchangeset.Entry[string]{{Seq: 0, Value: "create bucket"}})
	j.Close()

	text, err := os.Open(file.Name())
	if err != nil {
		log.Fatal(err)
	}
	defer text.Close()
	report, err := journal.Verify(text)
	fmt.Println(report.Lines, "lines,", report.Changesets, "changeset,", report.Entries, "entry,", err)
	fmt.Println(report.Hash)
	// Output:
	// 3 lines, 1 changeset, 1 entry, <nil>
	// ed1072d32743e1b1361538fa42f27672319e096875a13d810681eb50bbbfa0d8
}
