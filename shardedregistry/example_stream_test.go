//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/shardedregistry"
)

func ExampleRegistry_Stream() {
	jobs := shardedregistry.MustNew(shardedregistry.Config[string, string]{Transitions: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	go func() { // until the loop has begun and seen a first change
		for ctx.Err() == nil {
			jobs.Put("begin", "")
		}
		close(ended)
	}()
	for change, err := range jobs.Stream(context.Background(), 100_000) {
		if errors.Is(err, shardedregistry.ErrLagged) {
			fmt.Println("too slow: begin again with what the registry holds")
			break
		}
		switch {
		case ctx.Err() == nil:
			cancel()
			<-ended
			jobs.Create("backup", "queued")
			jobs.Put("backup", "running")
			jobs.Put("backup", "done")
			jobs.Delete("backup")
		case change.Deleted:
			fmt.Println("gone")
			return
		case change.Key == "backup":
			fmt.Println(change.Value)
		}
	}
	// Output:
	// queued
	// running
	// done
	// gone
}

func ExampleLaggedError() {
	jobs := shardedregistry.MustNew(shardedregistry.Config[string, string]{Transitions: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // until the loop is over
		for ctx.Err() == nil {
			jobs.Put("backup", "running")
		}
	}()
	for _, err := range jobs.Stream(ctx, 100) {
		var lagged *shardedregistry.LaggedError
		if errors.As(err, &lagged) {
			fmt.Println("more than", lagged.Limit, "changes wait") // begin again with a Snapshot
			break
		}
		for range 200 { // slower than the changes come
			jobs.Put("resize", "running")
		}
	}
	// Output: more than 100 changes wait
}
