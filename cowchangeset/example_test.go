//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
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
		NewID: func(context.Context) (string, error) { n++; return fmt.Sprint("plan-", n), nil },
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
		NewID: func(context.Context) (string, error) { n++; return fmt.Sprint("plan-", n), nil },
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

func ExampleTracker_RecordBatch() {
	var tracker cowchangeset.Tracker[string]
	plan, _ := tracker.Start(context.Background())
	tracker.Record("create schema")
	receipt, _ := tracker.RecordBatch([]string{"create table", "create index"})
	fmt.Println("from", receipt.Seq, "on, of", plan.Len())
	for seq, change := range plan.Entries() {
		fmt.Println(seq, change)
	}
	// Output:
	// from 1 on, of 3
	// 0 create schema
	// 1 create table
	// 2 create index
}

// A context that has ended keeps the entry out.
func ExampleTracker_RecordContext() {
	var tracker cowchangeset.Tracker[string]
	plan, _ := tracker.Start(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := tracker.RecordContext(ctx, "create table")
	fmt.Println(err, plan.Len())
	// Output: context canceled 0
}

func ExampleTracker_ByID() {
	n := 0
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{
		NewID: func(context.Context) (string, error) { n++; return fmt.Sprint("plan-", n), nil },
	})
	ctx := context.Background()
	for range 3 {
		tracker.Start(ctx)
	}
	plan, found := tracker.ByID("plan-2")
	fmt.Println(tracker.IDs(), plan.Ordinal(), found)
	fmt.Println(plan.Previous().ID(), plan.Next().ID())
	// Output:
	// [plan-1 plan-2 plan-3] 2 true
	// plan-1 plan-3
}

func ExampleChangeset_Seal() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	plan, _ := tracker.Start(ctx)
	plan.Record("create table")
	final, _ := plan.Seal(ctx)
	_, err := plan.Record("too late")
	fmt.Println(final.Len(), err)
	// Output: 1 cowchangeset: changeset is sealed
}

// The next Start seals the changeset that a goroutine waits for.
func ExampleChangeset_Sealed() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	plan, _ := tracker.Start(ctx)
	go func() {
		tracker.Record("create table")
		tracker.Start(ctx)
	}()
	<-plan.Sealed()
	fmt.Println(plan.Len())
	// Output: 1
}

// A Follow of one changeset ends when it is sealed and all is yielded.
func ExampleChangeset_Follow() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	plan, _ := tracker.Start(ctx)
	go func() {
		tracker.Record("create table")
		tracker.Record("create index")
		plan.Seal(ctx)
	}()
	for seq, change := range plan.Follow(ctx, 0) {
		fmt.Println(seq, change)
	}
	// Output:
	// 0 create table
	// 1 create index
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

func ExampleSlice_Append() {
	var hosts cowchangeset.Slice[string]
	fmt.Println(hosts.Append("db-1"), hosts.Append("db-2", "db-3"), hosts.Len())
	// Output: 0 1 3
}

// A function that filters may run again if another change comes first.
func ExampleSlice_Update() {
	var hosts cowchangeset.Slice[string]
	hosts.Append("db-1", "cache-1", "db-2")
	hosts.Update(func(old []string) []string {
		var dbs []string
		for _, h := range old {
			if strings.HasPrefix(h, "db-") {
				dbs = append(dbs, h)
			}
		}
		return dbs
	})
	fmt.Println(hosts.Load())
	// Output: [db-1 db-2]
}

func ExampleSlice_Snapshot() {
	var hosts cowchangeset.Slice[string]
	hosts.Append("db-1", "db-2")
	before := hosts.Snapshot()
	hosts.Set(0, "db-3")
	fmt.Println(before.At(0), hosts.Load()[0])
	fmt.Println(before.Version(), hosts.Snapshot().Version())
	// Output:
	// db-1 db-3
	// 2 3
}

// The ID says what a changeset belongs to, so that a store has both or neither.
func ExampleConfig_newID() {
	type planKey struct{}
	tracker := cowchangeset.MustNew(cowchangeset.Config[string]{
		NewID: func(ctx context.Context) (string, error) {
			plan, ok := ctx.Value(planKey{}).(string)
			if !ok {
				return "", errors.New("a changeset needs a plan")
			}
			return plan + "~" + rand.Text(), nil
		},
	})
	_, err := tracker.Start(context.Background())
	fmt.Println(err)

	c, _ := tracker.Start(context.WithValue(context.Background(), planKey{}, "migrate-users"))
	plan, _, _ := strings.Cut(c.ID(), "~")
	fmt.Println(plan)
	// Output:
	// a changeset needs a plan
	// migrate-users
}
