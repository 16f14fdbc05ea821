//go:build !modelcheck

package shardedregistry_test

import (
	"context"
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
