//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

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

// A whole new state at one instant is a new registry behind a pointer.
func ExampleRegistry_Replace_atomically() {
	type registry = shardedregistry.Registry[string, string]
	var routes atomic.Pointer[registry]
	load := func(file map[string]string) error {
		next := new(registry)
		if err := next.Replace(maps.All(file), nil); err != nil {
			return err
		}
		routes.Store(next) // readers see all of it or nothing
		return nil
	}
	load(map[string]string{"/": "home", "/old": "archive"})
	before := routes.Load()
	load(map[string]string{"/": "start"})
	fmt.Println(before.Len(), routes.Load().Len()) // a reader keeps the state that it has loaded
	// Output: 2 1
}
