package repair_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
)

// Everything from the first damage on is cut, and the segment is kept as it was.
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
	cut, err := repair.Repair(path)
	fmt.Println("damaged at line", cut.Damage.Line, "and", cut.Kept, "lines are kept:", err)
	fmt.Println(filepath.Match("0000000001.journal.2-????????.damaged", filepath.Base(cut.Aside[0])))
	// Output:
	// true
	// damaged at line 3 and 2 lines are kept: <nil>
	// true <nil>
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
