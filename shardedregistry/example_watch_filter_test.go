//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleKeys() {
	var jobs shardedregistry.Registry[string, string]
	jobs.Put("backup", "queued")
	for state, event := range jobs.WatchSnapshot(context.Background(), shardedregistry.Keys("backup", "resize")) {
		if state != nil {
			fmt.Println(state.Len())
			jobs.Put("report", "running") // the loop is not told
			jobs.Put("resize", "running")
			continue
		}
		fmt.Println(event.Key, event.Value)
		break
	}
	// Output:
	// 1
	// resize running
}

func ExamplePrefix() {
	var settings shardedregistry.Registry[string, int]
	for state, event := range settings.WatchSnapshot(context.Background(), shardedregistry.Prefix("tenants/7/")) {
		if state != nil {
			settings.Put("tenants/70/quota", 1) // another tenant
			settings.Put("tenants/7/quota", 2)
			continue
		}
		fmt.Println(event.Key, event.Value)
		break
	}
	// Output: tenants/7/quota 2
}

func ExampleMatching() {
	var sizes shardedregistry.Registry[int, string]
	even := shardedregistry.Matching(func(key int) bool { return key%2 == 0 })
	for state, event := range sizes.WatchSnapshot(context.Background(), even) {
		if state != nil {
			sizes.Put(7, "odd")
			sizes.Put(8, "even")
			continue
		}
		fmt.Println(event.Key, event.Value)
		break
	}
	// Output: 8 even
}
