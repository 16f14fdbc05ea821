//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
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
	hosts.Delete(0)            // whichever is first by now
	hosts.Update(slices.Clone) // gives back room that the items do not need
	fmt.Println(before, hosts.Load())
	// Output: [db-1 db-2 db-3] [db-2b db-3]
}

func ExampleSlice_CompareAndSwap() {
	var hosts cowchangeset.Slice[string]
	hosts.Append("db-1", "db-2")
	old := hosts.Snapshot()
	fmt.Println(hosts.CompareAndSwap(old, []string{old.Items()[1]}))
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
	fmt.Println(before.Items()[0], hosts.Load()[0])
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

// A service applies what is sealed and left: after Resume, what the process before
// it had not come to.
func ExampleTracker_Pending() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	for _, table := range []string{"users", "orders", "bills"} {
		tracker.Start(ctx)
		tracker.Record("create " + table)
	}
	for c := range tracker.Pending() {
		c.Apply(ctx, func(_ context.Context, changes cowchangeset.Final[string]) error {
			for _, change := range changes.All() {
				fmt.Println(c.Ordinal(), change)
			}
			return nil
		})
	}
	// Output:
	// 1 create users
	// 2 create orders
}

func ExampleTracker_Follow() {
	var tracker cowchangeset.Tracker[string]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, table := range []string{"users", "orders"} {
		tracker.Start(ctx)
		tracker.Record("create " + table)
	}
	for place, change := range tracker.Follow(ctx, cowchangeset.Receipt{}) {
		fmt.Println(place.Ordinal, place.Seq, change)
		if place.Ordinal == 2 {
			cancel() // or it would wait for more
		}
	}
	// Output:
	// 1 0 create users
	// 2 0 create orders
}

func ExampleTracker_All() {
	var tracker cowchangeset.Tracker[string]
	ctx := context.Background()
	for _, table := range []string{"users", "orders"} {
		tracker.Start(ctx)
		tracker.Record("create " + table)
	}
	for ordinal, c := range tracker.All() {
		fmt.Println(ordinal, c.Len(), c.IsSealed())
	}
	// Output:
	// 1 1 true
	// 2 1 false
}

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
			fmt.Println("no more than 1000 entries:", plan.Len() <= 1000, err)
			break
		}
	}
	// Output: no more than 1000 entries: true cowchangeset: store is too far behind
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
