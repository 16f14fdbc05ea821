//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/latchfree/latchfree/cowchangeset"
)

func Example() {
	var tracker cowchangeset.Tracker[string]
	changes, _ := tracker.Start(context.Background())

	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() { tracker.Record("row inserted") })
	}
	workers.Wait()

	tracker.Start(context.Background()) // the next changeset; seals the first
	final, _ := changes.Seal(context.Background())
	fmt.Println(final.Len(), "changes of", len(tracker.IDs()), "changesets")
	// Output: 3 changes of 2 changesets
}

func ExampleTracker_Record() {
	n := 0
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{
		NewID: func() string { n++; return fmt.Sprint("plan-", n) },
	})
	_, err := tracker.Record("too early")
	fmt.Println(err)

	tracker.Start(context.Background())
	receipt, _ := tracker.Record("create table")
	fmt.Println(receipt.ChangesetID, receipt.Ordinal, receipt.Seq)

	plan, _ := tracker.Current()
	plan.Seal(context.Background())
	_, err = tracker.Record("too late")
	fmt.Println(errors.Is(err, cowchangeset.ErrNoActive), errors.Is(err, cowchangeset.ErrSealed))
	// Output:
	// cowchangeset: no active changeset
	// plan-1 1 0
	// true true
}

func ExampleTracker_StartAfter() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	seen, _ := tracker.Start(ctx)
	tracker.Start(ctx) // somebody else was faster
	_, err := tracker.StartAfter(ctx, seen)
	fmt.Println(err)
	// Output: cowchangeset: not the latest changeset
}

func ExampleTracker_Trail() {
	n := 0
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{
		NewID: func() string { n++; return fmt.Sprint("plan-", n) },
	})
	ctx := context.Background()
	tracker.Start(ctx)
	tracker.RecordBatch([]string{"create table", "create index"})
	tracker.Start(ctx)
	tracker.Record("drop table")
	for receipt, change := range tracker.Trail().All() {
		fmt.Println(receipt.ChangesetID, receipt.Seq, change)
	}
	// Output:
	// plan-1 0 create table
	// plan-1 1 create index
	// plan-2 0 drop table
}

func ExampleSlice() {
	var hosts cowchangeset.Slice[string]
	hosts.Append("db-1", "db-2")
	before := hosts.Load()
	hosts.Append("db-3")
	fmt.Println(before, hosts.Load())
	// Output: [db-1 db-2] [db-1 db-2 db-3]
}

func ExampleSlice_Delete() {
	var hosts cowchangeset.Slice[string]
	hosts.Append("db-1", "db-2", "db-3")
	before := hosts.Load()
	hosts.Set(1, "db-2b")
	hosts.Delete(0) // whichever is first by now
	hosts.Clip()
	fmt.Println(before, hosts.Load())
	// Output: [db-1 db-2 db-3] [db-2b db-3]
}

func ExampleSlice_CompareAndSwap() {
	var hosts cowchangeset.Slice[string]
	hosts.Append("db-1", "db-2")
	old := hosts.Snapshot()
	fmt.Println(hosts.CompareAndSwap(old, []string{old.At(1)}))
	fmt.Println(hosts.CompareAndSwap(old, nil))
	fmt.Println(hosts.Load())
	// Output:
	// true
	// false
	// [db-2]
}
