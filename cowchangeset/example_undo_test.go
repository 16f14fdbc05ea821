//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Edit is an entry that says what it changes, from what to what.
type Edit struct{ Resource, Before, After string } // empty: the resource does not exist

func (e Edit) String() string {
	switch {
	case e.Before == "":
		return fmt.Sprintf("create %s as %s", e.Resource, e.After)
	case e.After == "":
		return fmt.Sprintf("delete %s, which is %s", e.Resource, e.Before)
	}
	return fmt.Sprintf("update %s from %s to %s", e.Resource, e.Before, e.After)
}

// net returns one edit for each resource that differs in the end, at the place of the
// first one since the resource was as before. What an edit needs stays before it.
func net(edits iter.Seq2[uint64, Edit]) (nets []Edit) {
	at := map[string]int{} // where the edit of a resource is
	for _, e := range edits {
		i, ok := at[e.Resource]
		if !ok {
			at[e.Resource] = len(nets)
			nets = append(nets, e)
			continue
		}
		if nets[i].After = e.After; nets[i].Before == e.After { // they have cancelled each other
			delete(at, e.Resource)
		}
	}
	return slices.DeleteFunc(nets, func(e Edit) bool { return e.Before == e.After })
}

// undo returns the edits that take a changeset's back, the last one first.
func undo(edits []Edit) []Edit {
	back := make([]Edit, 0, len(edits))
	for _, e := range slices.Backward(edits) {
		back = append(back, Edit{e.Resource, e.After, e.Before})
	}
	return back
}

// A service shows what a plan changes on the whole, and how to take it back.
func Example_netChangesAndUndo() {
	var tracker cowchangeset.Tracker[Edit]
	plan, _ := tracker.Start(context.Background())
	tracker.RecordBatch([]Edit{
		{"table users", "", "2 columns"},
		{"index users_id", "", "btree"},
		{"table tmp", "", "1 column"},
		{"table users", "2 columns", "3 columns"},
		{"table tmp", "1 column", ""},
		{"view v", "of users", "of users, 3 columns"},
	})
	final, _ := plan.Seal(context.Background())
	edits := net(final.All())
	for _, e := range edits {
		fmt.Println(e)
	}
	fmt.Println("to undo:")
	for _, e := range undo(edits) {
		fmt.Println(e)
	}
	// Output:
	// create table users as 3 columns
	// create index users_id as btree
	// update view v from of users to of users, 3 columns
	// to undo:
	// update view v from of users, 3 columns to of users
	// delete index users_id, which is btree
	// delete table users, which is 3 columns
}
