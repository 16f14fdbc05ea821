//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_Watch() {
	var plans shardedregistry.Registry[string, string]
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for event := range plans.Watch(ctx) {
			if event.Deleted {
				fmt.Println(event.Key, "is gone")
				return
			}
		}
	}()
	go func() { // until the loop has seen it
		for ctx.Err() == nil {
			plans.Put("nightly", "running")
			plans.Delete("nightly")
		}
	}()
	<-done
	cancel()
	// Output: nightly is gone
}

func ExampleRegistry_WatchSnapshot() {
	var plans shardedregistry.Registry[string, string]
	plans.Put("nightly", "ready")
	plans.Put("weekly", "ready")

	view := map[string]string{}
	for state, event := range plans.WatchSnapshot(context.Background()) {
		switch {
		case state != nil:
			view = maps.Collect(state.All())
			fmt.Println(view)
			plans.Put("nightly", "running") // by somebody else, rather
			plans.Delete("weekly")
		case event.Deleted:
			delete(view, event.Key)
		default:
			view[event.Key] = event.Value
		}
		if len(view) == 1 {
			break
		}
	}
	fmt.Println(view)
	// Output:
	// map[nightly:ready weekly:ready]
	// map[nightly:running]
}

func ExampleRegistry_Wait() {
	var jobs shardedregistry.Registry[string, string]
	go func() {
		jobs.Create("backup", "queued")
		jobs.Put("backup", "done")
	}()
	job, err := jobs.Wait(context.Background(), "backup", 0) // until it is there
	for err == nil && job.Value != "done" {
		job, err = jobs.Wait(context.Background(), "backup", job.Version)
	}
	fmt.Println(job.Value, err)
	// Output: done <nil>
}

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

// List, then watch; go on after a break; list again when too much was missed.
func ExampleRegistry_WatchFrom() {
	plans := shardedregistry.MustNew(shardedregistry.Config[string, string]{History: 4})
	plans.Put("nightly", "ready")

	state := plans.Snapshot()
	view := maps.Collect(state.All())
	seen := state.Revision()
	plans.Put("weekly", "ready") // by others, meanwhile
	plans.Delete("nightly")
	for change := range plans.WatchFrom(context.Background(), seen) {
		if seen = change.Revision; change.Deleted {
			delete(view, change.Key)
			break // the connection is lost
		}
		view[change.Key] = change.Value
	}
	fmt.Println(view)

	for i := range 5 {
		plans.Put(fmt.Sprint("plan ", i), "ready")
	}
	for _, err := range plans.WatchFrom(context.Background(), seen) {
		if errors.Is(err, shardedregistry.ErrCompacted) {
			state = plans.Snapshot()
		}
	}
	fmt.Println(state.Len())
	// Output:
	// map[weekly:ready]
	// 6
}
