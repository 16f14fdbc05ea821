//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/cowchangeset"
)

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
