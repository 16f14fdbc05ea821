//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A call for a host gets a result, or a rejection that names the host.
func ExampleExecuteGroup() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)},
	})
	get := func(host string, err error) {
		body, err := atomicbreaker.ExecuteGroup(context.Background(), upstream, host,
			func(context.Context) (string, error) { return "from " + host, err })
		fmt.Printf("%q %v\n", body, err)
	}
	get("db-1", errUnavailable)
	get("db-1", nil)
	get("db-2", nil)
	// Output:
	// "from db-1" unavailable
	// "" atomicbreaker: call rejected: breaker is open
	// "from db-2" <nil>
}

// A call that cannot be wrapped asks first, and reports afterwards.
func ExampleGroup_IsOpen() {
	var upstream atomicbreaker.Group[string]
	for _, host := range []string{"db-1", "db-2"} {
		if upstream.IsOpen(host) {
			continue
		}
		fmt.Println("calling", host)
		upstream.RecordSuccess(host)
	}
	// Output:
	// calling db-1
	// calling db-2
}

// Keys may have settings of their own.
func ExampleGroup_Config() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		PerKey: func(host string) atomicbreaker.Config {
			if host == "search" {
				return atomicbreaker.Config{Name: host, OpenTimeout: 5 * time.Second}
			}
			return atomicbreaker.Config{Name: host}
		},
	})
	fmt.Println(upstream.Config("search").OpenTimeout, upstream.Config("db").OpenTimeout)
	// Output: 5s 0s
}

// New settings apply to the failures that were counted before.
func ExampleGroup_Update() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(100)},
	})
	fmt.Println(upstream.RecordFailure("db-1"))
	err := upstream.Update(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)},
	})
	fmt.Println(err, upstream.RecordFailure("db-1"))
	// Output:
	// Counted
	// <nil> Tripped
}

// After a fault of the own network, all keys start anew. Results of calls from
// before do not count.
func ExampleGroup_ResetAll() {
	var upstream atomicbreaker.Group[string]
	early, _ := upstream.Allow("db-1")
	upstream.Trip("db-1", time.Hour)
	upstream.Trip("db-2", time.Hour)
	upstream.ResetAll()
	fmt.Println(upstream.Len(), upstream.State("db-1"), early.Failure())
	// Output: 0 Closed Late
}

// A sweep removes the keys that are forgotten. A key that is open until Reset stays.
func ExampleGroup_Sweep() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		ForgetAfter: time.Millisecond,
	})
	upstream.RecordFailure("db-1")
	upstream.Trip("db-2", -1)
	fmt.Println(upstream.Len(), "stored")
	for upstream.Sweep() == 0 {
		// db-1 is still remembered
	}
	fmt.Println(upstream.Len(), "stored")
	// Output:
	// 2 stored
	// 1 stored
}

// Stats are of all keys together.
func ExampleGroup_Stats() {
	var upstream atomicbreaker.Group[string]
	upstream.ForceOpen("db-1")
	upstream.Allow("db-1")
	upstream.Allow("db-1")
	s := upstream.Stats()
	fmt.Println(s.Opened, s.Rejected, s.Closed)
	// Output: 1 2 0
}

// At most one key is open: a fault that makes all calls fail is not that of the
// hosts.
func ExampleGroupConfig_maxOpen() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)},
		MaxOpen: 1,
	})
	for _, host := range []string{"db-1", "db-2", "db-3"} {
		if p, err := upstream.Allow(host); err == nil {
			fmt.Println(host, p.Failure())
		}
	}
	fmt.Println(upstream.Stats().Withheld)
	// Output:
	// db-1 Tripped
	// db-2 Counted
	// db-3 Counted
	// 2
}
