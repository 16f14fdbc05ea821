//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/latchfree/latchfree/shardedregistry"
)

func Example() {
	var actions shardedregistry.Registry[string, int] // name to number of runs

	_, err := actions.Create("backup", 0)
	fmt.Println(err)
	_, err = actions.Create("backup", 100) // never overwrites
	fmt.Println(err)

	entry, _ := actions.Update("backup", func(runs int) (int, error) { return runs + 1, nil })
	fmt.Println(entry.Value, entry.Version)
	_, err = actions.UpdateIf("backup", 1, 50) // only if nobody changed it since
	fmt.Println(err)
	// Output:
	// <nil>
	// shardedregistry: key exists: backup at version 1
	// 1 2
	// shardedregistry: version conflict: have 2, want 1
}

func ExampleRegistry_Update() {
	var stock shardedregistry.Registry[string, int]
	errSoldOut := errors.New("sold out")
	take := func(n int) (int, error) {
		if n == 0 {
			return 0, errSoldOut
		}
		return n - 1, nil
	}
	stock.Create("apple", 1)
	for range 2 {
		entry, err := stock.Update("apple", take)
		fmt.Println(entry.Value, err)
	}
	_, err := stock.Update("pear", take)
	fmt.Println(err)
	// Output:
	// 0 <nil>
	// 0 sold out
	// shardedregistry: key not found
}

func ExampleRegistry_UpdateIf() {
	var documents shardedregistry.Registry[string, string]
	documents.Put("readme", "draft")

	mine, _ := documents.Lookup("readme") // what an editor has loaded
	documents.Put("readme", "somebody else's text")
	_, err := documents.UpdateIf("readme", mine.Version, "my text")

	var conflict *shardedregistry.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println("changed from version", conflict.Want, "to", conflict.Have)
	}
	// Output: changed from version 1 to 2
}

func ExampleRegistry_Compute_count() {
	var words shardedregistry.Registry[string, int]
	for _, word := range strings.Fields("to be or not to be") {
		words.Compute(word, func(n int, _ bool) (int, shardedregistry.ComputeOp, error) {
			return n + 1, shardedregistry.UpdateOp, nil // an absent word counts from 0
		})
	}
	n, _ := words.Get("be")
	fmt.Println(n, words.Len())
	// Output: 2 4
}

func ExampleRegistry_DeleteIf() {
	var sessions shardedregistry.Registry[string, string]
	version, _ := sessions.Create("7f", "idle")
	sessions.Put("7f", "busy") // back in use before it is collected
	fmt.Println(sessions.DeleteIf("7f", version))
	// Output: shardedregistry: version conflict: have 2, want 1
}

func ExampleRegistry_All() {
	var ages shardedregistry.Registry[string, int]
	ages.Put("ann", 30)
	ages.Put("bob", 17)
	for name, age := range ages.All() {
		if age < 18 {
			ages.Delete(name) // the body may change the registry
		}
	}
	fmt.Println(ages.Len())
	// Output: 1
}

func ExampleRegistry_Create() {
	hosts := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		Normalize: func(name string) (string, error) { return strings.ToLower(name), nil },
	})
	hosts.Create("Alpha", "10.0.0.1")
	_, err := hosts.Create("ALPHA", "10.0.0.2") // never overwrites

	var exists *shardedregistry.ExistsError
	if errors.As(err, &exists) {
		fmt.Println(exists.Given, "was created as", exists.Stored)
	}
	fmt.Println(hosts.Get("alpha"))
	// Output:
	// ALPHA was created as Alpha
	// 10.0.0.1 true
}

func ExampleRegistry_GetOrCreate() {
	var limits shardedregistry.Registry[string, int]
	for range 2 {
		limit, created, err := limits.GetOrCreate("ann", func() (int, error) { return 100, nil })
		fmt.Println(limit, created, err)
	}
	// Output:
	// 100 true <nil>
	// 100 false <nil>
}

func ExampleRegistry_Peek() {
	type limits struct{ perRoute [32]int } // large: Get would copy it
	var r shardedregistry.Registry[string, limits]
	if _, err := r.Create("acme", limits{perRoute: [32]int{7: 100}}); err != nil {
		panic(err)
	}
	if l := r.Peek("acme"); l != nil { // shared by all readers: not to be modified
		fmt.Println(l.perRoute[7])
	}
	// Output: 100
}

func ExampleRegistry_Delete() {
	var tasks shardedregistry.Registry[string, string]
	tasks.Put("resize", "queued")
	if entry, ok := tasks.Delete("resize"); ok { // of several callers one gets it
		fmt.Println(entry.Value, entry.Version)
	}
	version, _ := tasks.Create("resize", "queued again")
	fmt.Println(version) // versions go on: the deletion was version 2
	// Output:
	// queued 1
	// 3
}
