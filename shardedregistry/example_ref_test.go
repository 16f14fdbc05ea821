//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_Ref() {
	var workers shardedregistry.Registry[string, int] // name to jobs done
	ref := workers.Ref("w1")                          // resolved once, used often
	ref.Create(0)
	for range 1000 {
		ref.Update(func(jobs int) (int, error) { return jobs + 1, nil })
	}
	fmt.Println(ref.Get())
	workers.Delete("w1")
	fmt.Println(ref.Get())
	// Output:
	// 1000 true
	// 0 false
}

func ExampleRef() {
	var plans shardedregistry.Registry[string, string]
	nightly := plans.Ref("nightly") // the key need not be present
	_, ok := nightly.Get()
	fmt.Println(ok)

	plans.Put("nightly", "ready")
	fmt.Println(nightly.Get())
	nightly.Delete()
	plans.Put("nightly", "created again")
	fmt.Println(nightly.Get()) // a Ref follows its key
	// Output:
	// false
	// ready true
	// created again true
}

func ExampleRef_Upsert() {
	var requests shardedregistry.Registry[string, int]
	count := requests.Ref("GET /index.html") // hashed once
	for range 3 {
		count.Upsert(func(n int, _ bool) (int, error) { return n + 1, nil })
	}
	fmt.Println(requests.Get("GET /index.html"))
	// Output: 3 true
}

func ExampleRef_UpdateIf() {
	var leases shardedregistry.Registry[string, string]
	leader := leases.Ref("leader")
	version, _ := leader.Put("ann")
	fmt.Println(leader.UpdateIf(version, "bob"))
	fmt.Println(leader.UpdateIf(version, "carl")) // comes too late
	// Output:
	// 2 <nil>
	// 0 shardedregistry: version conflict: have 2, want 1
}
