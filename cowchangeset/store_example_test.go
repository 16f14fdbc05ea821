//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// A process records into a journal and ends. The next one resumes where it was.
func ExampleResume() {
	dir, err := os.MkdirTemp("", "changes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	config := func() cowchangeset.Config[string] {
		j, err := journal.Open[string](filepath.Join(dir, "journal"), journal.Options{})
		if err != nil {
			log.Fatal(err)
		}
		return cowchangeset.Config[string]{Store: j}
	}

	first := config()
	tracker, _ := cowchangeset.Resume(ctx, first) // which is empty
	tracker.Start(ctx)
	tracker.Record("create table") // durable when it returns
	first.Store.(*journal.Journal[string]).Close()

	second := config()
	tracker, err = cowchangeset.Resume(ctx, second)
	plan, open := tracker.Current()
	fmt.Println(plan.Len(), "change, open:", open, err)
	receipt, err := tracker.Record("create index")
	fmt.Println(receipt.Ordinal, receipt.Seq, err)
	second.Store.(*journal.Journal[string]).Close()
	// Output:
	// 1 change, open: true <nil>
	// 1 1 <nil>
}

// With Async, Record does not wait for the store, and Flush does.
func ExampleTracker_Flush() {
	dir, err := os.MkdirTemp("", "changes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	j, err := journal.Open[string](filepath.Join(dir, "journal"), journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{Store: j, Async: true})
	ctx := context.Background()
	plan, _ := tracker.Start(ctx)
	for range 3 {
		tracker.Record("insert row")
	}
	fmt.Println(tracker.Flush(ctx), plan.Durable())
	// Output: <nil> 3
}

// While the store hangs, Async takes no more than MaxBacklog entries.
func ExampleConfig_maxBacklog() {
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{
		Store: hanging{}, Async: true, MaxBacklog: 1000, RejectWhenFull: true, StoreTimeout: time.Millisecond,
	})
	plan, _ := tracker.Start(context.Background())
	for {
		if _, err := tracker.Record("insert row"); err != nil {
			fmt.Println(plan.Len(), "entries:", err)
			break
		}
	}
	// Output: 1000 entries: cowchangeset: store is too far behind
}

// hanging is a store that starts changesets, and takes no entries.
type hanging struct{}

func (hanging) Start(context.Context, cowchangeset.Header) error { return nil }

func (hanging) Append(ctx context.Context, _ string, _ []cowchangeset.Entry[string]) error {
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) Seal(context.Context, string, cowchangeset.Manifest) error { return nil }

func (hanging) Abort(context.Context, string, string) error { return nil }

func ExampleTracker_Prune() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	for range 5 {
		plan, _ := tracker.Start(ctx)
		tracker.Record("insert row")
		plan.Apply(ctx, func(context.Context, cowchangeset.Final[string]) error { return nil })
	}
	fmt.Println("forgot", tracker.Prune(2), "of 5, kept", len(tracker.IDs()))
	latest, _ := tracker.Current()
	fmt.Println("the latest is still number", latest.Ordinal())
	// Output:
	// forgot 3 of 5, kept 2
	// the latest is still number 5
}
