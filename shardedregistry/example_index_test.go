//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_ByIndex() {
	type plan struct {
		Owner string
		Tags  []string
	}
	plans := shardedregistry.MustNew(shardedregistry.Config[string, plan]{
		Indexes: map[string]func(string, plan) []string{
			"owner": func(_ string, p plan) []string { return []string{p.Owner} },
			"tag":   func(_ string, p plan) []string { return p.Tags },
		},
	})
	plans.Put("backup", plan{"ann", []string{"nightly", "disk"}})
	plans.Put("resize", plan{"ann", []string{"disk"}})
	plans.Put("drain", plan{"bob", []string{"nightly"}})

	plans.Update("backup", func(p plan) (plan, error) { p.Owner = "bob"; return p, nil })
	for e := range plans.ByIndex("owner", "ann") {
		fmt.Println("ann:", e.Key, e.Version)
	}
	for e := range plans.ByIndex("tag", "nightly") {
		plans.Delete(e.Key) // the body may change the registry
	}
	fmt.Println(slices.Collect(plans.IndexValues("tag")))
	// Output:
	// ann: resize 1
	// [disk]
}

func ExampleRegistry_LookupBy() {
	addresses := shardedregistry.MustNew(shardedregistry.Config[string, string]{ // of users
		UniqueIndexes: map[string]func(string, string) []string{
			"email": func(_, address string) []string { return []string{address} },
		},
	})
	addresses.Create("ann", "ann@example.com")
	_, err := addresses.Create("anna", "ann@example.com")
	var taken *shardedregistry.UniqueError
	if errors.As(err, &taken) {
		fmt.Println(taken.Value, "is the", taken.Index, "of user", taken.Key)
	}
	addresses.Put("ann", "a@example.com") // gives the other up
	_, err = addresses.Create("anna", "ann@example.com")
	entry, ok := addresses.LookupBy("email", "ann@example.com")
	fmt.Println(err, entry.Key, ok)
	// Output:
	// ann@example.com is the email of user ann
	// <nil> anna true
}

func ExampleRegistry_IndexValues() {
	hosts := shardedregistry.MustNew(shardedregistry.Config[string, string]{ // to their regions
		Indexes: map[string]func(string, string) []string{
			"region": func(_, region string) []string { return []string{region} },
		},
	})
	hosts.Put("a", "north")
	hosts.Put("b", "south")
	hosts.Put("c", "south")
	hosts.Delete("a") // the last one in the north
	fmt.Println(slices.Collect(hosts.IndexValues("region")))
	// Output: [south]
}
