//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A registry for each tenant: its loops, its Len and its unique values are its own.
func Example_tenants() {
	type plans = shardedregistry.Registry[string, int] // to the number of steps
	var tenants shardedregistry.Registry[string, *plans]
	of := func(tenant string) *plans {
		p, _, _ := tenants.GetOrCreate(tenant, func() (*plans, error) { return new(plans), nil })
		return p
	}
	of("ann").Create("backup", 3)
	_, err := of("bob").Create("backup", 1) // another key
	fmt.Println(err)
	_, err = of("ann").Create("backup", 5)
	fmt.Println(err)
	fmt.Println(of("ann").Len(), tenants.Len())
	// Output:
	// <nil>
	// shardedregistry: key exists: backup at version 1
	// 1 2
}

// One registry for all tenants, if a Snapshot or a transaction has to show several.
func Example_tenantInKey() {
	type plan struct{ tenant, name string }
	plans := shardedregistry.MustNew(shardedregistry.Config[plan, string]{ // to their states
		Indexes: map[string]func(plan, string) []string{
			"tenant": func(p plan, _ string) []string { return []string{p.tenant} },
		},
	})
	plans.Put(plan{"ann", "backup"}, "ready")
	plans.Put(plan{"bob", "resize"}, "ready")
	for entry := range plans.ByIndex("tenant", "ann") {
		fmt.Println(entry.Key.name)
	}

	ofAnn := shardedregistry.Matching(func(p plan) bool { return p.tenant == "ann" })
	for state, event := range plans.WatchSnapshot(context.Background(), ofAnn) {
		if state != nil {
			fmt.Println(state.Len(), "plan")
			plans.Put(plan{"bob", "resize"}, "running") // not shown here
			plans.Put(plan{"ann", "backup"}, "running")
			continue
		}
		fmt.Println(event.Key.name, event.Value)
		break
	}
	// Output:
	// backup
	// 1 plan
	// backup running
}
