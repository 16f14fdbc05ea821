//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleNamespace() {
	// One registry for everything, so that one Snapshot shows all of it.
	var all shardedregistry.Registry[shardedregistry.Scoped[string], int] // to the number of steps
	plans := shardedregistry.Namespace(&all, "plans")
	actions := shardedregistry.Namespace(&all, "actions")

	plans.Create("backup", 3)
	_, err := actions.Create("backup", 1) // another key
	fmt.Println(err)
	_, err = plans.Create("backup", 5)
	fmt.Println(err)

	for name, steps := range plans.All() {
		fmt.Println(name, steps)
	}
	fmt.Println(all.Get(shardedregistry.Scoped[string]{Space: "actions", Key: "backup"}))
	// Output:
	// <nil>
	// shardedregistry: key exists: backup at version 1
	// backup 3
	// 1 true
}

func ExampleView_LookupBy() {
	type address = string
	users := shardedregistry.MustNew(shardedregistry.Config[shardedregistry.Scoped[string], address]{
		UniqueIndexes: map[string]func(shardedregistry.Scoped[string], address) []string{
			// The quoted Space makes an address unique in each namespace only.
			"email": func(user shardedregistry.Scoped[string], a address) []string {
				return []string{fmt.Sprintf("%q %s", user.Space, a)}
			},
		},
	})
	red, blue := shardedregistry.Namespace(users, "red"), shardedregistry.Namespace(users, "blue")
	red.Put("ann", "info@example.com")
	blue.Put("bob", "info@example.com")
	_, err := red.Create("carl", "info@example.com")
	fmt.Println(err)
	entry, ok := blue.LookupBy("email", `"blue" info@example.com`)
	fmt.Println(entry.Key, ok)
	// Output:
	// shardedregistry: value of a unique index is taken: email "\"red\" info@example.com" by ann
	// bob true
}

func ExampleView_Ref() {
	var all shardedregistry.Registry[shardedregistry.Scoped[string], int]
	backup := shardedregistry.Namespace(&all, "ann").Ref("backup")
	backup.Put(1)
	entry, _ := backup.Lookup()
	fmt.Println(entry.Key.Space, entry.Key.Key, entry.Value) // the whole key
	_, err := backup.Create(2)
	fmt.Println(err) // without its Space
	// Output:
	// ann backup 1
	// shardedregistry: key exists: backup at version 1
}

func ExampleView_WatchSnapshot() {
	var all shardedregistry.Registry[shardedregistry.Scoped[string], string]
	ann, bob := shardedregistry.Namespace(&all, "ann"), shardedregistry.Namespace(&all, "bob")
	ann.Put("backup", "ready")
	bob.Put("resize", "ready")

	for state, event := range ann.WatchSnapshot(context.Background()) {
		if state != nil {
			fmt.Println(state.Len(), "key")
			bob.Put("resize", "running") // wakes nobody here
			ann.Put("backup", "running")
			continue
		}
		fmt.Println(event.Key, event.Value)
		break
	}
	// Output:
	// 1 key
	// backup running
}
