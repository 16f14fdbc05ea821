//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Change is an entry that says what it changes, from what to what.
type Change struct {
	Resource      string
	Before, After string // empty: the resource does not exist
}

func (c Change) String() string {
	switch {
	case c.Before == "":
		return fmt.Sprintf("create %s as %s", c.Resource, c.After)
	case c.After == "":
		return fmt.Sprintf("delete %s, which is %s", c.Resource, c.Before)
	}
	return fmt.Sprintf("update %s from %s to %s", c.Resource, c.Before, c.After)
}

func resourceOf(c Change) string { return c.Resource }

// mergeChanges lets a creation and a deletion cancel each other, and an update
// and the one back too.
func mergeChanges(older, newer Change) (Change, bool) {
	return Change{older.Resource, older.Before, newer.After}, older.Before != newer.After
}

var errNoBackup = errors.New("no backup")

// undoChange fails if there is nothing to make the resource from.
func undoChange(c Change) (Change, error) {
	if c.Before == "dropped" {
		return Change{}, errNoBackup
	}
	return Change{c.Resource, c.After, c.Before}, nil
}

func ExampleCoalesce() {
	var tracker cowchangeset.Tracker[Change]
	plan, _ := tracker.Start(context.Background())
	for _, c := range []Change{
		{"table users", "", "2 columns"},
		{"index users_id", "", "btree"},
		{"table tmp", "", "1 column"},
		{"table users", "2 columns", "3 columns"},
		{"table tmp", "1 column", ""},
		{"view v", "of users", "of users, 3 columns"},
		{"index users_id", "btree", "hash"},
	} {
		tracker.Record(c)
	}
	final, _ := plan.Seal(context.Background())
	for _, c := range cowchangeset.Coalesce(cowchangeset.Values(final.All()), resourceOf, mergeChanges) {
		fmt.Println(c)
	}
	// Output:
	// create table users as 3 columns
	// create index users_id as hash
	// update view v from of users to of users, 3 columns
}

func ExampleInvert() {
	changes := []Change{
		{"table users", "", "2 columns"},
		{"row 1", "", "ada"},
		{"row 1", "ada", "grace"},
	}
	undo, _ := cowchangeset.Invert(slices.Values(changes), undoChange)
	for _, c := range undo {
		fmt.Println(c)
	}
	_, err := cowchangeset.Invert(slices.Values(append(changes, Change{"row 1", "dropped", ""})), undoChange)
	fmt.Println(err)
	// Output:
	// update row 1 from grace to ada
	// delete row 1, which is ada
	// delete table users, which is 2 columns
	// cowchangeset: inverting entry 3: no backup
}

func ExampleValues() {
	var tracker cowchangeset.Tracker[string]
	plan, _ := tracker.Start(context.Background())
	tracker.RecordBatch([]string{"create table", "create index"})
	fmt.Println(slices.Collect(cowchangeset.Values(plan.Entries())))
	// Output: [create table create index]
}
