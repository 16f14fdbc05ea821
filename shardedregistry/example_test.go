//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	type plan struct {
		Name  string
		Steps int
		Owner *string
	}
	var plans shardedregistry.Registry[string, plan]
	if _, err := plans.Create("backup", plan{Name: "backup", Steps: 3}); err != nil {
		panic(err)
	}
	if p := plans.Peek("backup"); p != nil { // no copy: all readers share it, and nobody may modify it
		fmt.Println(p.Steps)
	}
	// Output: 3
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

// Leases that end with the last user: the first one creates the entry, the last one
// deletes it, and nobody finds it between two steps.
func ExampleRegistry_Compute() {
	var users shardedregistry.Registry[string, int]
	join := func(n int, _ bool) (int, shardedregistry.ComputeOp, error) {
		return n + 1, shardedregistry.UpdateOp, nil
	}
	leave := func(n int, exists bool) (int, shardedregistry.ComputeOp, error) {
		switch {
		case !exists:
			return 0, shardedregistry.CancelOp, errors.New("nobody is there")
		case n == 1:
			return 0, shardedregistry.DeleteOp, nil
		}
		return n - 1, shardedregistry.UpdateOp, nil
	}
	users.Compute("room", join)
	users.Compute("room", join)
	for range 3 {
		entry, present, err := users.Compute("room", leave)
		fmt.Println(entry.Value, present, err)
	}
	// Output:
	// 1 true <nil>
	// 0 false <nil>
	// 0 false nobody is there
}

func ExampleRegistry_DeleteFunc() {
	var sessions shardedregistry.Registry[string, int] // name to minutes without use
	sessions.Put("ann", 3)
	sessions.Put("bob", 90)
	sessions.Put("eve", 200)
	n := sessions.DeleteFunc(func(_ string, minutes int) bool { return minutes > 60 })
	fmt.Println(n, sessions.Len())
	// Output: 2 1
}

// Entries and DeleteIf delete no more than enough, and nothing that has changed.
func ExampleRegistry_DeleteFunc_enough() {
	var sessions shardedregistry.Registry[string, int] // name to minutes without use
	for name, minutes := range map[string]int{"ann": 90, "bob": 120, "eve": 200} {
		sessions.Put(name, minutes)
	}
	deleted := 0
	for e := range sessions.Entries() {
		if deleted == 2 {
			break
		}
		if e.Value > 60 && sessions.DeleteIf(e.Key, e.Version) == nil {
			deleted++
		}
	}
	fmt.Println(deleted, sessions.Len())
	// Output: 2 1
}

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

func ExampleSnapshot_Lookup() {
	var stock shardedregistry.Registry[string, int]
	stock.Put("apple", 3)
	stock.Put("pear", 2)

	counted := stock.Snapshot()
	stock.Put("pear", 7) // after the count
	for _, fruit := range []string{"apple", "pear"} {
		entry, _ := counted.Lookup(fruit)
		_, err := stock.UpdateIf(fruit, entry.Version, 0) // sell what was counted
		fmt.Println(fruit, entry.Value, err)
	}
	// Output:
	// apple 3 <nil>
	// pear 2 shardedregistry: version conflict: have 2, want 1
}

func ExampleRegistry_MarshalJSON() {
	var ports shardedregistry.Registry[string, int]
	ports.Create("web", 80)
	ports.Create("dns", 52)
	ports.Put("dns", 53)

	state := ports.Snapshot()
	byName, _ := json.Marshal(maps.Collect(state.All()))
	fmt.Println(string(byName))
	entries := slices.SortedFunc(state.Entries(), func(a, b shardedregistry.Entry[string, int]) int {
		return strings.Compare(a.Key, b.Key)
	})
	list, _ := json.Marshal(entries)
	fmt.Println(string(list))
	// Output:
	// {"dns":53,"web":80}
	// [{"Key":"dns","Value":53,"Version":2},{"Key":"web","Value":80,"Version":1}]
}

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

func ExampleRegistry_Transact() {
	var accounts shardedregistry.Registry[string, int]
	accounts.Put("ann", 100)
	accounts.Put("bob", 20)

	errShort := errors.New("not enough money")
	transfer := func(from, to string, amount int) error {
		return accounts.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			has, _ := tx.Get(from)
			if has < amount {
				return errShort // and nothing has changed
			}
			if err := tx.Put(from, has-amount); err != nil {
				return err
			}
			gets, _ := tx.Get(to)
			return tx.Put(to, gets+amount)
		})
	}

	fmt.Println(transfer("ann", "bob", 30))
	fmt.Println(transfer("bob", "eve", 70))
	ann, _ := accounts.Get("ann")
	bob, _ := accounts.Get("bob")
	fmt.Println(ann, bob, accounts.Len())
	// Output:
	// <nil>
	// not enough money
	// 70 50 2
}

func ExampleTx_Lookup() {
	var plans shardedregistry.Registry[string, string]
	plans.Put("draft", "v1")
	// Rename a key, unless somebody has the new name.
	err := plans.Transact(func(tx *shardedregistry.Tx[string, string]) error {
		if e, ok := tx.Lookup("final"); ok {
			return &shardedregistry.ExistsError{Given: "final", Stored: e.Key, Version: e.Version}
		}
		e, ok := tx.Delete("draft")
		if !ok {
			return shardedregistry.ErrNotFound
		}
		return tx.Put("final", e.Value)
	})
	_, ok := plans.Get("draft")
	final, _ := plans.Get("final")
	fmt.Println(err, ok, final)
	// Output: <nil> false v1
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
	var squares shardedregistry.Registry[int, int]
	even := shardedregistry.Matching(func(key int) bool { return key%2 == 0 })
	for state, event := range squares.WatchSnapshot(context.Background(), even) {
		if state != nil {
			squares.Put(7, 49)
			squares.Put(8, 64)
			continue
		}
		fmt.Println(event.Key, event.Value)
		break
	}
	// Output: 8 64
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
