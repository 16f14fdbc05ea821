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
	var routes shardedregistry.Registry[string, string]
	same := func(a, b string) bool { return a == b }
	load := func(file map[string]string) { routes.Replace(maps.All(file), same) }

	load(map[string]string{"/": "home", "/old": "archive", "/shop": "shop"})
	load(map[string]string{"/": "home", "/new": "news", "/shop": "store"})
	for _, path := range slices.Sorted(maps.Keys(maps.Collect(routes.All()))) {
		target, _ := routes.Get(path)
		fmt.Println(path, target)
	}
	home, _ := routes.Lookup("/")
	fmt.Println(home.Version) // it is as it was
	// Output:
	// / home
	// /new news
	// /shop store
	// 1
}
