//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/latchfree/latchfree/shardedregistry"
)

// List, then watch; go on after a break; list again when too much was missed.
func ExampleRegistry_WatchFrom() {
	plans := shardedregistry.MustNew(shardedregistry.Config[string, string]{History: 4})
	plans.Put("nightly", "ready")

	state := plans.Snapshot()
	view := maps.Collect(state.All())
	seen := state.Revision()
	plans.Put("weekly", "ready") // by others, meanwhile
	plans.Delete("nightly")
	for change := range plans.WatchFrom(context.Background(), seen) {
		if seen = change.Revision; change.Deleted {
			delete(view, change.Key)
			break // the connection is lost
		}
		view[change.Key] = change.Value
	}
	fmt.Println(view)

	for i := range 5 {
		plans.Put(fmt.Sprint("plan ", i), "ready")
	}
	for _, err := range plans.WatchFrom(context.Background(), seen) {
		if errors.Is(err, shardedregistry.ErrCompacted) {
			state = plans.Snapshot()
		}
	}
	fmt.Println(state.Len())
	// Output:
	// map[weekly:ready]
	// 6
}
