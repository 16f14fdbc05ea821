//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_Clear() {
	var sessions shardedregistry.Registry[string, int]
	sessions.Put("ann", 1)
	sessions.Put("bob", 2)
	fmt.Println(sessions.Clear(), sessions.Len())

	v, err := sessions.Create("ann", 3)
	fmt.Println(v, err) // above the version of the deletion
	// Output:
	// 2 0
	// 3 <nil>
}

func ExampleRegistry_Replace() {
	routes := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		Check: func(path, target string) error {
			if target == "" {
				return fmt.Errorf("no target for %q", path)
			}
			return nil
		},
	})
	load := func(file map[string]string) error { return routes.Replace(maps.All(file)) }

	fmt.Println(load(map[string]string{"/": "home", "/old": "archive"}))
	fmt.Println(load(map[string]string{"/": "home", "/new": ""})) // and nothing has changed
	fmt.Println(load(map[string]string{"/": "start", "/new": "news"}))
	for _, path := range slices.Sorted(maps.Keys(maps.Collect(routes.All()))) {
		e, _ := routes.Lookup(path)
		fmt.Println(path, e.Value)
	}
	// Output:
	// <nil>
	// no target for "/new": /new
	// <nil>
	// / start
	// /new news
}
