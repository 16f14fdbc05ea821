//go:build !modelcheck

package shardedregistry_test

import (
	"strings"
	"testing"

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
		t.Errorf("a change of which a watcher has a slip allocates %v times, want 1", n)
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
