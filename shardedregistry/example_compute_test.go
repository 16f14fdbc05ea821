//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Leases that end with the last user: the first one creates the entry, the last one
// deletes it, and nobody finds it between two steps.
func ExampleRegistry_Compute() {
	var users shardedregistry.Registry[string, int]
	join := func(n int, _ bool) (int, shardedregistry.ComputeOp, error) {
		return n + 1, shardedregistry.UpdateOp, nil
	}
	leave := func(n int, exists bool) (int, shardedregistry.ComputeOp, error) {
		switch {
		case !exists:
			return 0, shardedregistry.CancelOp, errors.New("nobody is there")
		case n == 1:
			return 0, shardedregistry.DeleteOp, nil
		}
		return n - 1, shardedregistry.UpdateOp, nil
	}
	users.Compute("room", join)
	users.Compute("room", join)
	for range 3 {
		entry, present, err := users.Compute("room", leave)
		fmt.Println(entry.Value, present, err)
	}
	// Output:
	// 1 true <nil>
	// 0 false <nil>
	// 0 false nobody is there
}

func ExampleRegistry_DeleteFunc() {
	var sessions shardedregistry.Registry[string, int] // name to minutes without use
	sessions.Put("ann", 3)
	sessions.Put("bob", 90)
	sessions.Put("eve", 200)
	n := sessions.DeleteFunc(func(_ string, minutes int) bool { return minutes > 60 })
	fmt.Println(n, sessions.Len())
	// Output: 2 1
}

// Entries and DeleteIf delete no more than enough, and nothing that has changed.
func ExampleRegistry_DeleteFunc_enough() {
	var sessions shardedregistry.Registry[string, int] // name to minutes without use
	for name, minutes := range map[string]int{"ann": 90, "bob": 120, "eve": 200} {
		sessions.Put(name, minutes)
	}
	deleted := 0
	for e := range sessions.Entries() {
		if deleted == 2 {
			break
		}
		if e.Value > 60 && sessions.DeleteIf(e.Key, e.Version) == nil {
			deleted++
		}
	}
	fmt.Println(deleted, sessions.Len())
	// Output: 2 1
}
