//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/cowchangeset"
)

func ExampleChangeset_Apply() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	plan, _ := tracker.Start(ctx)
	tracker.RecordBatch([]string{"create table", "create index"})
	run := func(_ context.Context, changes cowchangeset.Final[string]) error {
		fmt.Println("running", changes.Len(), "changes")
		return nil
	}
	fmt.Println(plan.Apply(ctx, run))
	fmt.Println(plan.Apply(ctx, run))
	// Output:
	// running 2 changes
	// <nil>
	// cowchangeset: changeset has been applied
}

// After a failure, the next ApplyEach goes on with the entry that failed.
func ExampleChangeset_ApplyEach() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	plan, _ := tracker.Start(ctx)
	tracker.RecordBatch([]string{"create table", "create index", "create view"})
	locked := true
	run := func(_ context.Context, seq uint64, change string) error {
		if locked && change == "create index" {
			return errors.New("table is locked")
		}
		fmt.Println(seq, change)
		return nil
	}
	fmt.Println(plan.ApplyEach(ctx, run), "at", plan.Applied())
	locked = false
	fmt.Println(plan.ApplyEach(ctx, run))
	// Output:
	// 0 create table
	// table is locked at 1
	// 1 create index
	// 2 create view
	// <nil>
}

func ExampleChangeset_Abort() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	plan, _ := tracker.Start(ctx)
	tracker.Record("drop table")
	plan.Abort(ctx, errors.New("rejected in review"))

	err := plan.Apply(ctx, func(context.Context, cowchangeset.Final[string]) error { return nil })
	fmt.Println(err)
	fmt.Println(plan.Reason())
	// Output:
	// cowchangeset: changeset has been aborted
	// rejected in review
}
