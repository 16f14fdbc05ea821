//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// plan is a value of a realistic size.
type plan struct {
	Name  string
	Steps int
	Owner *string
}

func TestAllocations(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, plan]{
		Normalize: func(k string) (string, error) { return strings.ToLower(k), nil },
	})
	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = key(i)
	}
	if _, err := r.Create("present", plan{}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, r, "other", plan{})
	for _, k := range keys { // so that the tables need not grow below
		mustPut(t, r, k, plan{})
	}
	for _, k := range keys {
		r.Delete(k)
	}
	ref := r.Ref("Present")
	version := shardedregistry.Version(1)
	next := 0
	fresh := func() string { next++; return keys[next-1] }
	for _, c := range []struct {
		name string
		want float64
		do   func()
	}{
		{"Get, present", 0, func() { r.Get("present") }},
		{"Get, absent", 0, func() { r.Get("absent") }},
		{"Peek, present", 0, func() { r.Peek("present") }},
		{"Lookup, present", 0, func() { r.Lookup("present") }},
		{"Delete, absent", 0, func() { r.Delete("absent") }},
		{"Len", 0, func() { r.Len() }},
		{"UpdateIf: the record", 1, func() { version, _ = r.UpdateIf("present", version, plan{Steps: 2}) }},
		{"UpdateIf, conflict: the error", 1, func() { r.UpdateIf("present", version+1, plan{}) }},
		{"UpdateIf, absent", 0, func() { r.UpdateIf("absent", 1, plan{}) }},
		{"Update: the record", 1, func() {
			r.Update("present", func(p plan) (plan, error) { p.Steps++; return p, nil })
		}},
		{"Update, a capturing function", 1, func() {
			r.Update("present", func(p plan) (plan, error) { p.Steps = int(version); return p, nil })
		}},
		{"Update, absent", 0, func() {
			r.Update("absent", func(p plan) (plan, error) { return p, nil })
		}},
		{"Compute, present: the record", 1, func() {
			r.Compute("present", func(p plan, _ bool) (plan, shardedregistry.ComputeOp, error) {
				p.Steps = int(version)
				return p, shardedregistry.UpdateOp, nil
			})
		}},
		{"Compute that leaves the key", 0, func() {
			r.Compute("present", func(p plan, _ bool) (plan, shardedregistry.ComputeOp, error) {
				return plan{Steps: int(version)}, shardedregistry.CancelOp, nil
			})
		}},
		{"Put, present: the record", 1, func() { r.Put("present", plan{Steps: 3}) }},
		{"Create, present: the error and its keys", 3, func() { r.Create("present", plan{}) }},
		{"Create, absent: the record, the cell", 2, func() { r.Create(fresh(), plan{}) }},
		{"Put, absent: likewise", 2, func() { r.Put(fresh(), plan{}) }},
		{"GetOrCreate, present, a capturing function", 0, func() {
			r.GetOrCreate("present", func() (plan, error) { return plan{Steps: int(version)}, nil })
		}},
		{"GetOrCreate, absent: as Create", 2, func() {
			r.GetOrCreate(fresh(), func() (plan, error) { return plan{Steps: int(version)}, nil })
		}},
		{"Transact of two keys: the transaction, two records", 3, func() {
			r.Transact(func(tx *shardedregistry.Tx[string, plan]) error {
				p, _ := tx.Get("present")
				p.Steps++
				tx.Put("present", p)
				q, _ := tx.Get("other")
				q.Steps--
				return tx.Put("other", q)
			})
		}},
		{"Ref: the Ref", 1, func() { r.Ref("present") }},
		{"Ref.Get", 0, func() { ref.Get() }},
		{"Ref.Lookup", 0, func() { ref.Lookup() }},
		{"Ref.Peek", 0, func() { ref.Peek() }},
		{"Create and Delete: likewise, and the dead record", 3, func() {
			k := fresh()
			r.Create(k, plan{})
			r.Delete(k)
		}},
	} {
		if got := testing.AllocsPerRun(100, c.do); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
}

// TestIterationAllocatesPerShard is T10: a loop allocates one buffer for each
// table, however many entries there are.
func TestIterationAllocatesPerShard(t *testing.T) {
	const shards = 4
	cost := func(keys int) float64 {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: shards})
		for i := range keys {
			mustPut(t, r, key(i), i)
		}
		return testing.AllocsPerRun(20, func() {
			for range r.All() {
			}
		})
	}
	if few, many := cost(100), cost(2000); many > few+shards {
		t.Errorf("All allocates %v times for 100 keys and %v times for 2000", few, many)
	}
}

// A change of which a watcher has a notification already allocates its record alone. One
// of which it is told allocates a notification besides.
func TestWatchAllocations(t *testing.T) {
	var r shardedregistry.Registry[string, plan]
	mustPut(t, &r, "a", plan{})
	put := func() { r.Put("a", plan{Steps: 3}) }
	w := shardedregistry.Subscribe(&r)
	mustPut(t, &r, "a", plan{})
	if n := testing.AllocsPerRun(100, put); n != 1 {
		t.Errorf("a change of which a watcher has a notification allocates %v times, want 1", n)
	}
	w.Drain()
	if n := testing.AllocsPerRun(100, func() {
		put()
		w.Drain()
	}); n != 2+1 { // Drain's slice
		t.Errorf("a change of which a watcher is told, and its look, allocate %v times, want 3", n)
	}
	w.Leave()
	if n := testing.AllocsPerRun(100, put); n != 1 {
		t.Errorf("a change allocates %v times when the watcher has left, want 1", n)
	}
}

// What loops keep of each key that has changed, and how many allocations that takes, with the change, the
// loops' own lists and the test's keys: several loops share a list at the key's cell, which is of the right
// size.
func TestWatchAllocationsOfKeys(t *testing.T) {
	skipUnderRace(t)
	const keys = 5000
	var r shardedregistry.Registry[string, int]
	var loops []shardedregistry.Watcher[string, int]
	change := func() {
		for i := range keys {
			mustPut(t, &r, key(i), i)
		}
		for _, w := range loops {
			w.Drain()
		}
	}
	memory := func() (m runtime.MemStats) {
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m
	}
	change()
	for _, want := range []struct{ more, bytes, allocations uint64 }{{1, 178, 7}, {1, 113, 9}, {3, 325, 16}, {1, 97, 13}} {
		for range want.more {
			loops = append(loops, shardedregistry.Subscribe(&r))
		}
		before := memory()
		change()
		after := memory()
		bytes, allocations := (after.HeapAlloc-before.HeapAlloc)/keys, (after.Mallocs-before.Mallocs)/keys
		if allocations != want.allocations || bits.UintSize == 64 && max(bytes, want.bytes)-min(bytes, want.bytes) > 12 {
			t.Errorf("%d more loops, and %d in all, keep %d bytes of each key, of %d allocations; want %d, of %d",
				want.more, len(loops), bytes, allocations, want.bytes, want.allocations)
		}
	}
	runtime.KeepAlive(&r)
	for _, w := range loops {
		w.Leave()
	}
}

// With a history, a change allocates its record and what is remembered, and a loop nothing to
// yield it.
func TestHistoryAllocations(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, plan]{History: 1024})
	mustPut(t, r, "a", plan{})
	put := func() { r.Put("a", plan{Steps: 3}) }
	if n := testing.AllocsPerRun(100, put); n != 2 {
		t.Errorf("a change allocates %v times, want 2", n)
	}
	s := shardedregistry.OpenFeed(r)
	if n := testing.AllocsPerRun(100, func() {
		put()
		s.Next()
	}); n != 2 {
		t.Errorf("a change and its look allocate %v times, want 2", n)
	}
}

// newOwned returns n plans of which ann owns all, and bob one more.
func newOwned(t testing.TB, n int) *shardedregistry.Registry[string, plan] {
	ann, bob := "ann", "bob"
	owners := map[string][]string{ann: {ann}, bob: {bob}}
	r := shardedregistry.MustNew(shardedregistry.Config[string, plan]{
		Indexes: map[string]func(string, plan) []string{"owner": func(_ string, p plan) []string {
			return owners[*p.Owner] // allocates nothing
		}},
	})
	for i := range n {
		mustPut(t, r, key(i), plan{Owner: &ann})
	}
	mustPut(t, r, "one more", plan{Owner: &bob})
	return r
}

func TestIndexAllocations(t *testing.T) {
	r := newOwned(t, 3)
	ann, bob, k := "ann", "bob", key(0)
	u := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		UniqueIndexes: map[string]func(string, string) []string{"email": func(_, v string) []string { return []string{v} }},
	})
	mustPut(t, u, "a", "a@x")
	for _, c := range []struct {
		name string
		want float64
		do   func()
	}{
		{"ByIndex, its loop and the body", 3, func() {
			for range r.ByIndex("owner", ann) {
			}
		}},
		{"LookupBy, present", 0, func() { u.LookupBy("email", "a@x") }},
		{"LookupBy, absent", 0, func() { u.LookupBy("email", "b@x") }},
		{"Put that keeps its values: the record, and what the function returned", 2, func() { r.Put(k, plan{Steps: 3, Owner: &ann}) }},
		{"Put that moves, twice: likewise, a set added to and one taken from", 2 * (2 + 2*2), func() {
			r.Put(k, plan{Owner: &bob})
			r.Put(k, plan{Owner: &ann})
		}},
		{"Delete, and Create: the dead record, a set; the two of Create, what the function returned, a set", 8, func() {
			r.Delete(k)
			r.Create(k, plan{Owner: &ann})
		}},
	} {
		if got := testing.AllocsPerRun(100, c.do); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
}

// Under a value of 20,000 keys, a change copies a few nodes of the set and not
// all of it.
func TestIndexChangesAreLocal(t *testing.T) {
	n := iterations(20_000)
	r := newOwned(t, n)
	ann, bob := "ann", "bob"
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range runs {
		mustPut(t, r, key(i), plan{Owner: &bob})
		mustPut(t, r, key(i), plan{Owner: &ann})
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / (2 * runs)
	t.Logf("%d bytes for each change among %d keys", each, n)
	if each > 3000 {
		t.Errorf("each change allocates %d bytes", each)
	}
}

// Values that come and go, one for each life of an entity, leave nothing behind
// (Kubernetes issue 84959).
func TestIndexMemory(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, string]{
		Shards:        1,
		Indexes:       map[string]func(string, string) []string{"id": func(_, id string) []string { return []string{id, "all"} }},
		UniqueIndexes: map[string]func(string, string) []string{"unique": func(_, id string) []string { return []string{id} }},
	})
	uuid := func(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(i)*2654435761, i) }
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const live = 100
	churn := func(from, to int) {
		for i := from; i < to; i++ {
			mustPut(t, r, key(i%live), uuid(i))
			if i%3 == 0 {
				r.Delete(key(i % live))
			}
		}
	}
	churn(0, 10*live)
	before := heap()
	n := iterations(100_000)
	churn(10*live, n)
	all := 0
	for range n / 10 { // many at once, so that the tables grow, and shrink again
		mustPut(t, r, key(live+all), uuid(n+all))
		all++
	}
	for i := range all {
		r.Delete(key(live + i))
	}
	if after := heap(); after > before+256<<10 {
		t.Errorf("%d values left %d bytes", n, after-before)
	}
	lists, keys, pins := shardedregistry.Pins(r)
	if want := 2*r.Len() + 1; lists != want || keys != 3*r.Len() || pins != keys {
		t.Errorf("%d entities keep %d values, %d keys and %d pins", r.Len(), lists, keys, pins)
	}
	for i := range live {
		r.Delete(key(i))
	}
	if lists, _, _ := shardedregistry.Pins(r); lists != 0 {
		t.Errorf("%d values are left of nothing", lists)
	}
}

// blob is a value that is a heap object of its own.
type blob struct{ bytes [64 << 10]byte }

// What a snapshot contains lives as long as the snapshot and no longer, and it
// keeps neither the registry nor what its records replaced.
func TestSnapshotMemory(t *testing.T) {
	r := new(shardedregistry.Registry[string, *blob])
	first, second := new(blob), new(blob)
	before, at, registry := weak.Make(first), weak.Make(second), weak.Make(r)
	mustPut(t, r, "a", first)
	taking := shardedregistry.Join(r) // needs the first for a while
	mustPut(t, r, "a", second)
	first, second = nil, nil
	s := r.Snapshot()
	mustPut(t, r, "a", new(blob))
	taking.Leave()
	runtime.GC()
	if before.Value() != nil {
		t.Error("what was replaced before the cut is kept")
	}
	runtime.KeepAlive(r)
	r, taking = nil, shardedregistry.Taking[string, *blob]{}
	runtime.GC()
	if registry.Value() != nil {
		t.Error("the snapshot keeps the registry")
	}
	if v, ok := s.Get("a"); !ok || v != at.Value() {
		t.Errorf("Get = %p, %v; want %p", v, ok, at.Value())
	}
	s = nil
	runtime.GC()
	if at.Value() != nil {
		t.Error("a value of a snapshot outlives it")
	}
}

// A snapshot keeps no key that it does not contain.
func TestSnapshotKeepsNoKeyThatHasGone(t *testing.T) {
	var r shardedregistry.Registry[*blob, int]
	k := new(blob)
	gone := weak.Make(k)
	if _, err := r.Put(k, 1); err != nil {
		t.Fatal(err)
	}
	taking := shardedregistry.Join(&r)
	r.Delete(k)
	k = nil
	taking.Collect()
	s := taking.Leave()
	taking = shardedregistry.Taking[*blob, int]{}
	runtime.GC()
	if gone.Value() != nil || s.Len() != 0 {
		t.Errorf("a snapshot of %d keys keeps one that has gone", s.Len())
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(&r)
}

// An update that starts over when a snapshot has been taken keeps nothing of
// its attempt during it.
func TestUpdateOutlivesSnapshot(t *testing.T) {
	var r shardedregistry.Registry[string, *blob]
	first := new(blob)
	before := weak.Make(first)
	mustPut(t, &r, "a", first)
	first = nil
	taking := shardedregistry.Join(&r)
	runs := 0
	_, err := r.Update("a", func(*blob) (*blob, error) {
		if runs++; runs == 1 {
			mustPut(t, &r, "a", new(blob)) // makes this attempt fail
			taking.Leave()
		}
		return new(blob), nil
	})
	if err != nil || runs != 2 {
		t.Fatalf("Update = %v after %d runs, want 2", err, runs)
	}
	taking = shardedregistry.Taking[string, *blob]{}
	runtime.GC()
	if before.Value() != nil {
		t.Error("what the first attempt would have replaced is kept")
	}
	runtime.KeepAlive(&r)
}

// Taking a snapshot costs a number of allocations that does not depend on the
// number of keys, and reading one costs none.
func TestSnapshotAllocations(t *testing.T) {
	const shards = 4
	cost := func(keys int) float64 {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: shards, Normalize: func(k string) (string, error) {
			return strings.ToLower(k), nil
		}})
		for i := range keys {
			mustPut(t, r, key(i), i)
		}
		s := r.Snapshot()
		for name, read := range map[string]func(){
			"Get":    func() { s.Get(key0); s.Get("absent") },
			"Lookup": func() { s.Lookup(key0); s.Lookup("absent") },
			"All": func() {
				for range s.All() {
				}
			},
		} {
			if n := testing.AllocsPerRun(20, read); n != 0 {
				t.Errorf("%s allocates %v times", name, n)
			}
		}
		return testing.AllocsPerRun(20, func() { r.Snapshot() })
	}
	if few, many := cost(100), cost(2000); many > few+3*shards {
		t.Errorf("Snapshot allocates %v times for 100 keys and %v times for 2000", few, many)
	}
}

var key0 = fmt.Sprint(key(0))

// A loop that stalls delays nobody. What waits for it is bounded by the keys,
// however often they change, come and go, and it sees how they end.
func TestWatcherStalls(t *testing.T) {
	const keys, rounds = 50, 40
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	w, other := shardedregistry.Subscribe(r), shardedregistry.Subscribe(r)
	within(t, func() {
		for round := range rounds {
			for i := range keys {
				mustPut(t, r, key(i), round)
				mustPut(t, r, key(i), -round)
				if round == rounds-1 && i%2 == 0 || round%2 == i%2 {
					r.Delete(key(i))
				}
			}
			other.Drain()
			if notifications, linked, subscriptions := w.Notifications(), shardedregistry.Linked(r), shardedregistry.Subscriptions(r); notifications > keys || linked > keys || subscriptions > 2*keys {
				t.Fatalf("%d notifications, %d cells, %d subscriptions in round %d", notifications, linked, subscriptions, round)
			}
		}
	})
	view := map[string]int{}
	apply(view, w.Drain())
	if len(view) != r.Len() {
		t.Errorf("the loop has %d keys, want %d", len(view), r.Len())
	}
	for k, v := range view {
		wantValue(t, r, k, v)
	}
	if linked := shardedregistry.Linked(r); linked != r.Len() {
		t.Errorf("%d cells are linked for %d keys", linked, r.Len())
	}
	w.Leave()
	other.Leave()
	wantTraces(t, r)
}

// What a loop keeps of keys that are gone is bounded by those that are there, or 64.
func TestWatchForgetsKeys(t *testing.T) {
	var empty shardedregistry.Registry[string, int]
	only, most := shardedregistry.Subscribe(&empty), 0
	for i := range 200 {
		mustPut(t, &empty, key(i), i)
		only.Drain()
		empty.Delete(key(i))
		only.Drain()
		most = max(most, only.Kept())
	}
	if only.Leave(); most != 64 {
		t.Errorf("a loop keeps %d keys of none, want 64", most)
	}
	var r shardedregistry.Registry[string, int]
	w, other := shardedregistry.Subscribe(&r), shardedregistry.Subscribe(&r)
	defer w.Leave()
	defer other.Leave()
	for i := range 100 {
		mustPut(t, &r, fmt.Sprint("stays ", i), i)
	}
	for i := range 5000 {
		mustPut(t, &r, key(i), i)
		if i%2 == 0 {
			w.Drain()
		}
		r.Delete(key(i))
		w.Drain()
		other.Drain()
		mustPut(t, &r, "again", i) // each time a cell of its own
		w.Drain()
		r.Delete("again")
		w.Drain()
		other.Drain()
		if n := w.Kept(); n > 2*100+4 {
			t.Fatalf("the loop keeps %d keys of %d", n, r.Len())
		}
	}
	if n := w.Kept(); n < 100 {
		t.Errorf("the loop has forgotten keys that are there: it has %d", n)
	}
}

// Neither a loop nor what it has yielded keeps values that were replaced, and
// when it has ended nothing keeps the loop.
func TestWatchMemory(t *testing.T) {
	r := new(shardedregistry.Registry[string, *blob])
	first, second := new(blob), new(blob)
	replaced, deleted := weak.Make(first), weak.Make(second)
	mustPut(t, r, "a", first)
	mustPut(t, r, "b", second)
	body := new(blob)
	watching := weak.Make(body)
	func() {
		for state, e := range r.WatchSnapshot(t.Context()) {
			if state != nil {
				mustPut(t, r, "a", new(blob))
				r.Delete("b")
				state, first, second = nil, nil, nil
				continue
			}
			body.bytes[0]++
			if e.Key == "b" {
				mustPut(t, r, "c", new(blob))
			}
			if e.Key == "c" {
				break
			}
			if runtime.GC(); replaced.Value() != nil {
				t.Error("the loop keeps a value that was replaced")
			}
		}
	}()
	body = nil
	runtime.GC()
	if deleted.Value() != nil {
		t.Error("a value that was deleted is kept")
	}
	if watching.Value() != nil {
		t.Error("the loop is kept")
	}
	wantTraces(t, r)
	runtime.KeepAlive(r)
}

// What a loop keeps of one key keeps nothing of those that changed beside it.
func TestWatchForgetsNeighbours(t *testing.T) {
	type name struct{ string }
	var r shardedregistry.Registry[any, int]
	w := shardedregistry.Subscribe(&r)
	defer w.Leave()
	stays, goes := &name{"stays"}, &name{"goes"}
	gone := weak.Make(goes)
	for _, k := range []*name{stays, goes, &name{"last"}} { // in one batch
		mustPut[any](t, &r, k, 1)
	}
	w.Drain()
	r.Delete(goes)
	w.Drain()
	for i := range 200 { // the loop looks through what it keeps
		k := &name{key(i)}
		mustPut[any](t, &r, k, i)
		r.Delete(k)
		w.Drain()
	}
	goes = nil
	runtime.GC()
	if gone.Value() != nil {
		t.Error("a key that is gone is kept")
	}
	wantValue[any](t, &r, stays, 1)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever a loop takes part in costs the same beside 1,000 other loops as beside 4,000: joining,
// the first change of a key, further ones, its deletion, and leaving.
func TestLoopsCostTheSameBesideOthers(t *testing.T) {
	type steps map[string]uint64 // bytes a loop
	filters := map[string][]shardedregistry.Filter[string]{
		"one key":            {shardedregistry.Keys("hot")},
		"one key, two times": {shardedregistry.Keys("hot"), shardedregistry.Prefix("ho")},
		"a prefix":           {shardedregistry.Prefix("h")},
		"all keys":           nil,
	}
	for name, filter := range filters {
		measured := func(loops int) steps {
			var r shardedregistry.Registry[string, int]
			mustPut(t, &r, "hot", 0)
			all, got := make([]shardedregistry.Watcher[string, int], loops), steps{}
			step := func(name string, f func()) { got[name] = allocated(f) / uint64(loops) }
			drain := func(version int) func() {
				return func() {
					for i, w := range all {
						if events := w.Drain(); len(events) != 1 {
							t.Fatalf("%s: loop %d of %d has %v after change %d", name, i, loops, events, version)
						}
					}
				}
			}
			step("joining", func() {
				for i := range all {
					all[i] = shardedregistry.SubscribeFiltered(&r, filter...)
				}
			})
			step("the first change", func() { r.Put("hot", 1) })
			step("the first look", drain(1))
			step("the second change", func() { r.Put("hot", 2) })
			step("the second look", drain(2))
			step("the deletion", func() { r.Delete("hot") })
			step("the last look", drain(3))
			step("the creation", func() { r.Create("hot", 3) })
			step("leaving", func() {
				for _, w := range all {
					w.Leave()
				}
			})
			wantTraces(t, &r)
			return got
		}
		few, many := measured(1000), measured(4000)
		for step, bytes := range many {
			if bytes > few[step]+few[step]/2+64 {
				t.Errorf("%s: %s takes %d bytes beside 4,000 loops, and %d beside 1,000", name, step, bytes, few[step])
			}
			if step != "joining" && step != "leaving" && bytes > 300 {
				t.Errorf("%s: %s takes %d bytes a loop", name, step, bytes)
			}
		}
	}
}

// Loops that look at a deletion, in whatever order, find one that has yet to look without asking
// all others: the last one unlinks the cell.
func TestLooksAtADeletionAskFewOthers(t *testing.T) {
	const loops = 4000
	for name, order := range map[string]func(i int) int{
		"as they came":        func(i int) int { return i },
		"the other way round": func(i int) int { return loops - 1 - i },
		"at random": func() func(i int) int {
			p := rand.New(rand.NewPCG(1, 2)).Perm(loops)
			return func(i int) int { return p[i] }
		}(),
	} {
		var r shardedregistry.Registry[string, int]
		mustPut(t, &r, "hot", 0)
		all := make([]shardedregistry.Watcher[string, int], loops)
		for i := range all {
			all[i] = shardedregistry.SubscribeTo(&r, "hot")
		}
		r.Delete("hot")
		asked := 0
		for i := range loops {
			w := all[order(i)]
			w.Drain()
			if i < loops-1 {
				asked += w.Asked("hot")
			}
		}
		if n := shardedregistry.Linked(&r); n != 0 {
			t.Errorf("%s: %d cells stay", name, n)
		}
		if asked > 40*loops {
			t.Errorf("%s: each of %d loops asks %d others", name, loops, asked/loops)
		}
		for _, w := range all {
			w.Leave()
		}
		wantTraces(t, &r)
	}
}

// Creations of keys of different shards write no common word, but one in a batch.
func TestCreationsCountInTheirShards(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 4})
	const n = 10_000
	for i := range n {
		mustPut(t, r, key(i), i)
	}
	before, written := shardedregistry.Counted(r), 0
	for i := n; i < n+n/10; i++ {
		mustPut(t, r, key(i), i)
		now := shardedregistry.Counted(r)
		if now != before {
			written++
		}
		before = now
	}
	if written > n/100 {
		t.Errorf("%d of %d creations have written the count that all share", written, n/10)
	}
}

// skipUnderRace skips a test that measures memory if the race detector is on, which changes that.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector changes what is allocated")
	}
}
