//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_Ref() {
	var plans shardedregistry.Registry[string, string]
	nightly := plans.Ref("nightly") // hashed once; the key need not be present
	_, ok := nightly.Get()
	fmt.Println(ok)

	plans.Put("nightly", "ready")
	fmt.Println(nightly.Get())
	plans.Delete("nightly")
	plans.Put("nightly", "created again")
	fmt.Println(nightly.Get()) // a Ref follows its key
	// Output:
	// false
	// ready true
	// created again true
}
