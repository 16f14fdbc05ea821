//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
)

// A service keeps an audit trail, which survives its process. A change of its files shows.
func Example_auditTrail() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, ctx := filepath.Join(dir, "audit"), context.Background()

	type Event struct{ Who, What string }
	resume := func() (*journal.Journal[Event], *cowchangeset.Tracker[Event]) {
		j, err := journal.Open[Event](path, journal.Options{})
		if err != nil {
			log.Fatal(err)
		}
		tracker, err := cowchangeset.Resume(ctx, cowchangeset.Config[Event]{Store: j, PruneUnapplied: true})
		if err != nil {
			log.Fatal(err)
		}
		if _, open := tracker.Current(); !open {
			if _, err := tracker.Start(ctx); err != nil {
				log.Fatal(err)
			}
		}
		return j, tracker
	}

	j, tracker := resume()
	if _, err := tracker.Record(Event{"ann", "deletes order 7"}); err != nil {
		log.Fatal(err) // the event is not durable: do not delete the order
	}
	anchor := j.Hash() // to be kept elsewhere
	j.Close()          // or the process is killed

	j, tracker = resume()
	tracker.Start(ctx) // a new day
	tracker.Record(Event{"bob", "ships order 8"})
	for receipt, event := range tracker.Trail().All() {
		fmt.Println(receipt.Ordinal, receipt.Seq, event.Who, event.What)
	}
	j.Close()

	report, err := reader.Verify(path, anchor)
	fmt.Println(report.Entries, "events, unchanged:", err == nil)
	// Output:
	// 1 0 ann deletes order 7
	// 2 0 bob ships order 8
	// 2 events, unchanged: true
}

// A backup of a journal is a copy of its directory, made while it is written. The anchor, taken
// before and kept elsewhere, proves that the copy has every line up to there as it was. It says
// nothing about what was recorded later, which the copy may have in part.
func Example_backup() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, backup, ctx := filepath.Join(dir, "audit"), filepath.Join(dir, "backup"), context.Background()
	j, err := journal.Open[string](path, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{Store: j})
	tracker.Start(ctx)
	tracker.Record("ann deletes order 7")

	anchor := j.Hash() // what Record has returned for is before it; with Async, Flush first
	if err := os.CopyFS(backup, os.DirFS(path)); err != nil {
		log.Fatal(err)
	}
	tracker.Record("bob ships order 8") // not in the backup
	j.Close()
	os.RemoveAll(path) // the disk is lost

	report, err := reader.Verify(backup, anchor)
	fmt.Println(report.Entries, "entry, complete up to the anchor:", err == nil)
	if err := os.CopyFS(path, os.DirFS(backup)); err != nil {
		log.Fatal(err)
	}
	j, err = journal.Open[string](path, journal.Options{MustExist: true})
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()
	tracker, err = cowchangeset.Resume(ctx, cowchangeset.Config[string]{Store: j})
	if err != nil {
		log.Fatal(err)
	}
	// Receipts given after the backup may be given again: so seal what it left open.
	if _, err := tracker.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for r, e := range tracker.Trail().All() {
		fmt.Println(r.Ordinal, r.Seq, e)
	}
	// Output:
	// 1 entry, complete up to the anchor: true
	// 1 0 ann deletes order 7
}
