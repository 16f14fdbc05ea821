//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"maps"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_CreateMany() {
	var plans shardedregistry.Registry[string, int]
	plans.Create("b", 7)
	n, err := plans.CreateMany(maps.All(map[string]int{"a": 1, "b": 2, "c": 3}))
	fmt.Println(n, err)
	// Output: 2 shardedregistry: key exists: b at version 1
}

func ExampleRegistry_DeleteMatching() {
	var sessions shardedregistry.Registry[string, int] // name to minutes without use
	sessions.Put("ann", 3)
	sessions.Put("bob", 90)
	sessions.Put("eve", 200)
	n := sessions.DeleteMatching(func(e shardedregistry.Entry[string, int]) bool { return e.Value > 60 })
	fmt.Println(n, sessions.Len())
	// Output: 2 1
}

func ExampleKeyError() {
	ports := shardedregistry.MustNew(shardedregistry.Config[string, int]{
		Check: func(_ string, port int) error {
			if port < 1024 {
				return errors.New("reserved")
			}
			return nil
		},
	})
	ports.Create("http", 8080)
	created, err := ports.CreateMany(func(yield func(string, int) bool) {
		_ = yield("http", 8081) && yield("ssh", 22) && yield("grpc", 9090)
	})
	fmt.Println(created, "created")
	fmt.Println(err) // joins one error for each of the others

	var failed *shardedregistry.KeyError
	fmt.Println(errors.As(err, &failed), failed.Key, errors.Is(err, shardedregistry.ErrExists))
	// Output:
	// 1 created
	// shardedregistry: key exists: http at version 1
	// reserved: ssh
	// true ssh true
}
