//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

func ExampleConfig_normalize() {
	steps := shardedregistry.MustNew(shardedregistry.Config[string, int]{ // of plans, by their names
		Normalize: func(name string) (string, error) {
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "" {
				return "", errors.New("a plan needs a name")
			}
			return name, nil
		},
	})
	steps.Create("Nightly", 3)
	_, err := steps.Create("NIGHTLY", 5)
	fmt.Println(err)
	_, err = steps.Create("  ", 1)
	fmt.Println(err)
	entry, _ := steps.Lookup(" nightly ")
	fmt.Println(entry.Key, entry.Value)
	// Output:
	// shardedregistry: key exists: NIGHTLY, created as Nightly, at version 1
	// shardedregistry: invalid key: a plan needs a name
	// nightly 3
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

func ExampleRegistry_Upsert() {
	var words shardedregistry.Registry[string, int]
	for _, word := range strings.Fields("to be or not to be") {
		words.Upsert(word, func(n int, _ bool) (int, error) { return n + 1, nil })
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

func ExampleRegistry_Snapshot() {
	var seats shardedregistry.Registry[string, string]
	seats.Put("12a", "ann")
	seats.Put("12b", "bob")

	before := seats.Snapshot()
	seats.Delete("12a")
	seats.Put("12b", "ann")

	who, _ := before.Get("12b")
	fmt.Println(who, before.Len(), seats.Len())
	// Output: bob 2 1
}

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
