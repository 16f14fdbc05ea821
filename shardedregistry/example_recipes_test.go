//go:build !modelcheck

package shardedregistry_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/latchfree/latchfree/shardedregistry"
)

// pod is what an informer keeps.
type pod struct{ Namespace, Name, Node string }

// podStore is what client-go's ThreadSafeStore is to an informer: the objects that it has been
// told of, by their keys, with indexers that have names. Loops over pods.Watch take the place of
// event handlers.
type podStore struct {
	pods     *shardedregistry.Registry[string, pod]
	indexers map[string]func(string, pod) []string
}

func newPodStore(indexers map[string]func(string, pod) []string) podStore {
	return podStore{shardedregistry.MustNew(shardedregistry.Config[string, pod]{Indexes: indexers}), indexers}
}

// Add and Update are one verb. A pod that is as it was wakes no loop.
func (s podStore) Update(key string, p pod) error {
	_, _, err := s.pods.Compute(key, func(old pod, exists bool) (pod, shardedregistry.ComputeOp, error) {
		if exists && old == p {
			return old, shardedregistry.CancelOp, nil
		}
		return p, shardedregistry.UpdateOp, nil
	})
	return err
}

func (s podStore) Get(key string) (pod, bool) { return s.pods.Get(key) }

func (s podStore) Delete(key string) { s.pods.Delete(key) }

// Replace takes the list with which an informer begins, and with which it begins again when its
// watch has broken.
func (s podStore) Replace(list map[string]pod) error {
	return s.pods.Replace(maps.All(list), func(a, b pod) bool { return a == b })
}

func (s podStore) List() []pod { return slices.Collect(maps.Values(maps.Collect(s.pods.All()))) }

// ByIndex returns the pods that have a value in an index, and an error if there is no such index.
func (s podStore) ByIndex(index, value string) (pods []pod, err error) {
	if _, ok := s.indexers[index]; !ok {
		return nil, fmt.Errorf("index with name %s does not exist", index)
	}
	for e := range s.pods.ByIndex(index, value) {
		pods = append(pods, e.Value)
	}
	return pods, nil
}

// Index returns the pods that share a value of an index with p.
func (s podStore) Index(index string, p pod) ([]pod, error) {
	indexer, ok := s.indexers[index]
	if !ok {
		return nil, fmt.Errorf("index with name %s does not exist", index)
	}
	found := map[pod]bool{} // under two values, a pod is found twice
	for _, value := range indexer("", p) {
		for e := range s.pods.ByIndex(index, value) {
			found[e.Value] = true
		}
	}
	return slices.Collect(maps.Keys(found)), nil
}

// The store of an informer: indexers by name, Replace for a list, and readers that never wait for
// the one that writes. What takes effect together in client-go, under its lock, does so key by key
// here: a reader may see one pod of a Replace before another.
func Example_informer() {
	store := newPodStore(map[string]func(string, pod) []string{
		"node":      func(_ string, p pod) []string { return []string{p.Node} },
		"namespace": func(_ string, p pod) []string { return []string{p.Namespace} },
	})
	store.Replace(map[string]pod{
		"web/a": {"web", "a", "n1"},
		"web/b": {"web", "b", "n2"},
		"db/c":  {"db", "c", "n1"},
	})
	store.Update("web/a", pod{"web", "a", "n2"})
	store.Delete("db/c")

	byName := func(a, b pod) int { return strings.Compare(a.Name, b.Name) }
	onN2, err := store.ByIndex("node", "n2")
	slices.SortFunc(onN2, byName)
	fmt.Println(onN2, err)
	sameNode, _ := store.Index("node", pod{Node: "n1"})
	fmt.Println(len(sameNode), len(store.List()))
	_, err = store.ByIndex("owner", "ann")
	fmt.Println(err)

	// The watch broke, and the list is read again: what is equal keeps its version.
	before, _ := store.pods.Lookup("web/b")
	store.Replace(map[string]pod{"web/b": {"web", "b", "n2"}, "web/d": {"web", "d", "n3"}})
	after, _ := store.pods.Lookup("web/b")
	fmt.Println(before.Version == after.Version, slices.Collect(store.pods.IndexValues("namespace")))
	// Output:
	// [{web a n2} {web b n2}] <nil>
	// 0 2
	// index with name owner does not exist
	// true [web]
}

// A registry for each tenant: its loops, its Len and its unique values are its own.
func Example_tenants() {
	type plans = shardedregistry.Registry[string, int] // to the number of steps
	var tenants shardedregistry.Registry[string, *plans]
	of := func(tenant string) *plans {
		p, _, _ := tenants.GetOrCreate(tenant, func() (*plans, error) { return new(plans), nil })
		return p
	}
	of("ann").Create("backup", 3)
	_, err := of("bob").Create("backup", 1) // another key
	fmt.Println(err)
	_, err = of("ann").Create("backup", 5)
	fmt.Println(err)
	fmt.Println(of("ann").Len(), tenants.Len())
	tenants.Delete("ann") // with all that is hers; what a caller stores who still holds her registry is lost
	fmt.Println(of("ann").Len(), tenants.Len())
	// Output:
	// <nil>
	// shardedregistry: key exists: backup at version 1
	// 1 2
	// 0 2
}
func Example_tenantInKey() {
	type plan struct{ tenant, name string }
	plans := shardedregistry.MustNew(shardedregistry.Config[plan, string]{ // to their states
		Indexes: map[string]func(plan, string) []string{
			"tenant": func(p plan, _ string) []string { return []string{p.tenant} },
		},
	})
	plans.Put(plan{"ann", "backup"}, "ready")
	plans.Put(plan{"bob", "resize"}, "ready")
	for entry := range plans.ByIndex("tenant", "ann") {
		fmt.Println(entry.Key.name)
	}

	ofAnn := shardedregistry.Matching(func(p plan) bool { return p.tenant == "ann" })
	for state, event := range plans.WatchSnapshot(context.Background(), ofAnn) {
		if state != nil {
			fmt.Println(state.Len(), "plan")
			plans.Put(plan{"bob", "resize"}, "running") // not shown here
			plans.Put(plan{"ann", "backup"}, "running")
			continue
		}
		fmt.Println(event.Key.name, event.Value)
		break
	}
	// Output:
	// backup
	// 1 plan
	// backup running
}

// A whole new state at one instant is a new registry behind a pointer. A reader uses the one that it
// has loaded until its work is done. The new one begins above the versions of the old one, so that a
// version of before fails where it is compared. Loops over the old one are not told: they watch the
// pointer's owner, here by a channel.
func ExampleRegistry_Replace_atomically() {
	type registry = shardedregistry.Registry[string, string]
	var (
		routes  atomic.Pointer[registry]
		changed = make(chan struct{}, 1)
		none    = func(func(shardedregistry.Entry[string, string]) bool) {}
	)
	routes.Store(new(registry))
	load := func(file map[string]string) error { // one caller at a time
		last := routes.Load().Snapshot().Last()
		next, err := shardedregistry.Restore(shardedregistry.Config[string, string]{}, last, none)
		if err != nil {
			return err
		}
		if err := next.Replace(maps.All(file), nil); err != nil {
			return err
		}
		routes.Store(next) // readers see all of it or nothing
		select {
		case changed <- struct{}{}:
		default: // it is told already
		}
		return nil
	}
	load(map[string]string{"/": "home", "/old": "archive"})
	before := routes.Load()
	known, _ := before.Lookup("/")
	load(map[string]string{"/": "start"})
	fmt.Println(before.Len(), routes.Load().Len(), len(changed))
	_, err := routes.Load().UpdateIf("/", known.Version, "end")
	fmt.Println(err)
	// Output:
	// 2 1 1
	// shardedregistry: version conflict: have 2, want 1
}

// A registry has no order, and a snapshot sorts what it has: once, and as often as the caller
// likes. Pages of it fit together, whatever changes meanwhile.
func ExampleSnapshot_Entries_sorted() {
	var scores shardedregistry.Registry[string, int]
	for name, score := range map[string]int{"dora": 7, "ann": 3, "cleo": 9, "bob": 7} {
		scores.Put(name, score)
	}
	type entry = shardedregistry.Entry[string, int]
	state := scores.Snapshot()

	best := slices.SortedFunc(state.Entries(), func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Key, b.Key))
	})
	fmt.Println(best[0].Key, best[1].Key)

	names := slices.Sorted(state.Keys())
	page := func(after string, n int) []string { // the n names after one, which need not be there
		i, found := slices.BinarySearch(names, after)
		if found {
			i++
		}
		return names[i:min(i+n, len(names))]
	}
	first := page("", 2)
	scores.Delete("bob")
	fmt.Println(first, page(first[1], 2))
	// Output:
	// cleo bob
	// [ann bob] [cleo dora]
}

// A transaction cannot read an index: others could give the value to a key before it commits. So what
// it needs to know of many keys is a key of its own, here how many jobs an owner has.
func ExampleTx_Put_quota() {
	type entity struct {
		owner string // of a job
		jobs  int    // of an owner
	}
	entities := shardedregistry.MustNew(shardedregistry.Config[string, *entity]{
		Indexes: map[string]func(string, *entity) []string{"owner": func(_ string, e *entity) []string {
			if e.owner == "" {
				return nil
			}
			return []string{e.owner}
		}},
	})
	errQuota := errors.New("too many jobs")
	add := func(job, owner string) error {
		return entities.Transact(func(tx *shardedregistry.Tx[string, *entity]) error {
			if _, ok := tx.Get("job/" + job); ok {
				return shardedregistry.ErrExists
			}
			jobs := 1
			if count, ok := tx.Get("owner/" + owner); ok {
				jobs += count.jobs
			}
			if jobs > 2 {
				return errQuota
			}
			if err := tx.Put("owner/"+owner, &entity{jobs: jobs}); err != nil {
				return err
			}
			return tx.Put("job/"+job, &entity{owner: owner})
		})
	}
	fmt.Println(add("index", "ann"), add("mail", "ann"), add("post", "bob"), add("clean", "ann"))

	var jobs []string
	for e := range entities.ByIndex("owner", "ann") {
		jobs = append(jobs, e.Key)
	}
	slices.Sort(jobs)
	fmt.Println(jobs)
	// Output:
	// <nil> <nil> <nil> too many jobs
	// [job/index job/mail]
}
