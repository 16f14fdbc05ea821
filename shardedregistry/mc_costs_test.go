//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

type names = shardedregistry.Registry[string, int]

// newNames returns a registry with a key, and one that is gone. The number of
// shards would otherwise depend on the machine.
func newNames() *names {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 64})
	r.Put("a", 7)
	r.Put("gone", 7)
	r.Delete("gone")
	return r
}

// sharing is what the users of one key do.
func sharing(op func(*names)) func() func(int) {
	return func() func(int) {
		r := newNames()
		return func(int) { op(r) }
	}
}

// sharing2 is sharing where there is another key.
func sharing2(op func(*names)) func() func(int) {
	return func() func(int) {
		r := newNames()
		r.Put("b", 7)
		return func(int) { op(r) }
	}
}

// eachKey is what users do who have keys of their own, and new ones each time.
func eachKey(op func(r *names, fresh string)) func() func(int) {
	return func() func(int) {
		r := newNames()
		var used [64]int
		return func(core int) {
			used[core]++
			op(r, fmt.Sprint(core, " ", used[core]))
		}
	}
}

// What a look-up does to shared words: it reads.
func TestCosts(t *testing.T) {
	add := func(v int) (int, error) { return v + 1, nil }
	mc.CheckCost(t, "Get", sharing(func(r *names) { r.Get("a") }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Get of an absent key", sharing(func(r *names) { r.Get("gone") }), mc.Cost{Loads: 1, TableReads: 1}, 0)
	mc.CheckCost(t, "Peek", sharing(func(r *names) { r.Peek("a") }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Lookup", sharing(func(r *names) { r.Lookup("a") }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Update", sharing(func(r *names) { r.Update("a", add) }), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1}, 2, 4.63, 32.48)
	mc.CheckCost(t, "Lookup, and UpdateIf", sharing(func(r *names) { e, _ := r.Lookup("a"); r.UpdateIf("a", e.Version, 8) }), mc.Cost{Loads: 6, RMWs: 1, TableReads: 2}, 1.25, 1.44, 1.49)
	mc.CheckCost(t, "UpdateIf of another version", sharing(func(r *names) { r.UpdateIf("a", 1<<40, 8) }), mc.Cost{Loads: 3, TableReads: 1}, 0)
	mc.CheckCost(t, "Put of a present key", sharing(func(r *names) { r.Put("a", 8) }), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1}, 2, 4.63, 32.48)
	mc.CheckCost(t, "Put of a present key, in a zero Registry", func() func(int) {
		var r names
		r.Put("a", 7)
		return func(int) { r.Put("a", 8) }
	}, mc.Cost{Loads: 4, RMWs: 1, TableReads: 1}, 2, 4.63, 32.48)
	mc.CheckCost(t, "Create of a present key", sharing(func(r *names) { r.Create("a", 8) }), mc.Cost{Loads: 4, TableReads: 1}, 0)
	mc.CheckCost(t, "Create", eachKey(func(r *names, fresh string) { r.Create(fresh, 8) }), mc.Cost{Loads: 5, RMWs: 2, TableReads: 1, TableWrites: 1}, 4.06, 4.89, 5.3)
	mc.CheckCost(t, "Create, and Delete", eachKey(func(r *names, fresh string) { r.Create(fresh, 8); r.Delete(fresh) }), mc.Cost{Loads: 12, RMWs: 5, TableReads: 2, TableWrites: 2}, 4.1, 5.14, 6.95)
	mc.CheckCost(t, "Create, and Update of that", eachKey(func(r *names, fresh string) { r.Create(fresh, 8); r.Update(fresh, add) }), mc.Cost{Loads: 9, RMWs: 3, TableReads: 2, TableWrites: 1}, 4.06, 4.89, 5.3)
	mc.CheckCost(t, "Delete of an absent key", sharing(func(r *names) { r.Delete("gone") }), mc.Cost{Loads: 1, TableReads: 1}, 0)
	transfer := func(tx *shardedregistry.Tx[string, int]) error {
		a, _ := tx.Get("a")
		b, _ := tx.Get("b")
		tx.Put("a", a-1)
		return tx.Put("b", b+1)
	}
	mc.CheckCost(t, "Transact of two keys", sharing2(func(r *names) { r.Transact(transfer) }), mc.Cost{Loads: 13, RMWs: 5, TableReads: 2}, 14.25, 79.09, 644.87)
	mc.CheckCost(t, "Transact that reads two keys", sharing2(func(r *names) {
		r.Transact(func(tx *shardedregistry.Tx[string, int]) error { tx.Get("a"); tx.Get("b"); return nil })
	}), mc.Cost{Loads: 5, TableReads: 2}, 0)
	mc.CheckCost(t, "Len", sharing(func(r *names) { r.Len() }), mc.Cost{Loads: 1 + 64 + 2}, 0)
	mc.CheckCost(t, "a loop over Entries", sharing(func(r *names) {
		for range r.Entries() {
		}
	}), mc.Cost{Loads: 2, TableReads: 2}, 0)
}

// What is read through a Ref, by all users of one.
func TestRefCosts(t *testing.T) {
	ref := func(op func(shardedregistry.Ref[string, int])) func() func(int) {
		return func() func(int) {
			r := newNames()
			ref := r.Ref("a")
			ref.Get()
			return func(int) { op(ref) }
		}
	}
	mc.CheckCost(t, "Ref.Get", ref(func(r shardedregistry.Ref[string, int]) { r.Get() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Ref.Lookup", ref(func(r shardedregistry.Ref[string, int]) { r.Lookup() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Ref.Get of an absent key", func() func(int) {
		gone := newNames().Ref("gone")
		return func(int) { gone.Get() }
	}, mc.Cost{Loads: 2, TableReads: 1}, 0)

	r := newNames()
	again := r.Ref("a")
	again.Get()
	r.Delete("a")
	r.Put("a", 7)
	if got, want := mc.Measure(func() { again.Get() }), (mc.Cost{Loads: 5, Stores: 1, TableReads: 1}); got != want {
		t.Errorf("the first Ref.Get after the key was re-created costs %v, want %v", got, want)
	}
	if got, want := mc.Measure(func() { again.Get() }), (mc.Cost{Loads: 2}); got != want {
		t.Errorf("the second costs %v, want %v", got, want)
	}
}

// What the other ways to use a key cost.
func TestSurfaceCosts(t *testing.T) {
	mc.CheckCost(t, "GetOrCreate of a present key", sharing(func(r *names) { r.GetOrCreate("a", answer(8, nil)) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "GetOrCreate", eachKey(func(r *names, fresh string) { r.GetOrCreate(fresh, answer(8, nil)) }), mc.Cost{Loads: 5, RMWs: 2, TableReads: 1, TableWrites: 1}, 4.06, 4.89, 5.3)
	keep := func(int, bool) (int, shardedregistry.ComputeOp, error) { return 0, shardedregistry.CancelOp, nil }
	count := func(v int, _ bool) (int, shardedregistry.ComputeOp, error) {
		return v + 1, shardedregistry.UpdateOp, nil
	}
	mc.CheckCost(t, "Compute that leaves the key", sharing(func(r *names) { r.Compute("a", keep) }), mc.Cost{Loads: 3, TableReads: 1}, 0)
	mc.CheckCost(t, "Compute of a present key", sharing(func(r *names) { r.Compute("a", count) }), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1}, 2, 4.63, 32.48)
	mc.CheckCost(t, "DeleteFunc that matches nothing", sharing(func(r *names) {
		r.DeleteFunc(func(string, int) bool { return false })
	}), mc.Cost{Loads: 3, TableReads: 2}, 0)
}

// joining is sharing while a snapshot is being taken, which has made a cut. Who
// has written the key before does not matter: its record is dated.
func joining(op func(*names)) func() func(int) {
	return func() func(int) {
		r := newNames()
		shardedregistry.Join(r)
		r.Put("a", 8)
		return func(int) { op(r) }
	}
}

// What a snapshot costs others while it is being taken, and its collector.
func TestSnapshotCosts(t *testing.T) {
	mc.CheckCost(t, "Get of a dated record", joining(func(r *names) { r.Get("a") }), mc.Cost{Loads: 3, TableReads: 1}, 0)
	mc.CheckCost(t, "Peek of a dated record", joining(func(r *names) { r.Peek("a") }), mc.Cost{Loads: 3, TableReads: 1}, 0)
	r := newNames()
	shardedregistry.Join(r)
	shardedregistry.Stored(r, "a", 8)
	if got, want := mc.Measure(func() { r.Get("a") }), (mc.Cost{Loads: 4, RMWs: 1, TableReads: 1}); got != want {
		t.Errorf("Get that finds a record undated costs %v, want %v", got, want)
	}
	mc.CheckCost(t, "Put of a present key", joining(func(r *names) { r.Put("a", 9) }), mc.Cost{Loads: 12, Stores: 1, RMWs: 3, TableReads: 1}, 5, 27.25, 251.03)
	mc.CheckCost(t, "Create, and Delete", func() func(int) {
		r := newNames()
		shardedregistry.Join(r)
		return func(core int) { k := fmt.Sprint(core); r.Create(k, 8); r.Delete(k) }
	}, mc.Cost{Loads: 23, Stores: 2, RMWs: 8, TableReads: 2, TableWrites: 2}, 3, 3, 5.62)
	mc.CheckCost(t, "Snapshot of two keys", func() func(int) {
		r := twoKeys(both7)()
		return func(int) { r.Snapshot() }
	}, mc.Cost{Loads: 19, RMWs: 4, TableReads: 4}, 6, 34, 482)
}

// leased returns a registry with a key that has a time to live. Its timers do not run: the model does not say what starting one costs.
func leased(life time.Duration) *names {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 64, TTL: func(string, int) time.Duration { return life }})
	shardedregistry.PauseTimers(r)
	r.Put("a", 7)
	return r
}

// What a time to live costs: those who read, nothing; a change that puts the deadline off, and
// a renewal, no mutex. Those who renew one key all change its deadline.
func TestExpiryCosts(t *testing.T) {
	shared := func(op func(*names)) func() func(int) {
		return func() func(int) {
			r := leased(time.Hour)
			return func(int) { op(r) }
		}
	}
	mc.CheckCost(t, "Get", shared(func(r *names) { r.Get("a") }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Put that puts the deadline off", shared(func(r *names) { r.Put("a", 8) }), mc.Cost{Loads: 6, RMWs: 1, TableReads: 1, Clock: 1}, 3, 10.5, 98.15)
	mc.CheckCost(t, "Renew", shared(func(r *names) { r.Renew("a", 1, time.Hour) }), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1, Clock: 1}, 1.5, 1.88, 1.98)

	r := leased(time.Hour)
	other := leased(forever)
	check := func(name string, do func(), want mc.Cost) {
		t.Helper()
		if got := mc.Measure(do); got != want {
			t.Errorf("%s costs %v, want %v", name, got, want)
		}
	}
	check("Create", func() { r.Create("b", 1) }, mc.Cost{Loads: 8, Stores: 1, RMWs: 2, Blocking: 2, TableReads: 1, TableWrites: 1, Clock: 1})
	check("Delete", func() { r.Delete("b") }, mc.Cost{Loads: 7, Stores: 1, RMWs: 3, Blocking: 2, TableReads: 1, TableWrites: 1})
	check("Create of what does not expire", func() { other.Create("b", 1) }, mc.Cost{Loads: 7, RMWs: 2, TableReads: 1, TableWrites: 1})
	check("Renew that brings the deadline forward", func() { r.Renew("a", 1, time.Minute) }, mc.Cost{Loads: 5, Stores: 1, RMWs: 1, Blocking: 2, TableReads: 1, Clock: 1})
}

// parities is what the users of a registry do that is indexed by parity and has
// keys under both.
func parities(op func(r *names, core, turn int)) func() func(int) {
	return func() func(int) {
		parity := indexes{"parity": func(_ string, v int) []string { return []string{fmt.Sprint(v & 1)} }}
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 64, Indexes: parity})
		r.Put("a", 7)
		r.Put("even", 0)
		r.Put("odd", 1)
		for core := range 64 {
			r.Put(fmt.Sprint(core), 0)
		}
		var turns [64]int
		return func(core int) { turns[core]++; op(r, core, turns[core]) }
	}
}

// What an index costs those who read, those who change nothing that it is about,
// and those who do, each with a key of its own.
func TestIndexCosts(t *testing.T) {
	mc.CheckCost(t, "Get", parities(func(r *names, _, _ int) { r.Get("a") }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Put that stays under its value", parities(func(r *names, _, _ int) { r.Put("a", 9) }), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1}, 2, 4.63, 32.48)
	mc.CheckCost(t, "Put that moves", parities(func(r *names, core, turn int) { r.Put(fmt.Sprint(core), turn) }), mc.Cost{Loads: 6, RMWs: 3, TableReads: 3}, 4, 5, 67.83)
	mc.CheckCost(t, "ByIndex of one key", func() func(int) {
		r := indexed(shardedregistry.Config[string, int]{Indexes: indexes{"digit": digits}})
		r.Put("a", 1)
		return func(int) {
			for range r.ByIndex("digit", "1") {
			}
		}
	}, mc.Cost{Loads: 3, TableReads: 2}, 0)
	mc.CheckCost(t, "ByIndex of none", func() func(int) {
		r := indexed(shardedregistry.Config[string, int]{Indexes: indexes{"digit": digits}})
		return func(int) {
			for range r.ByIndex("digit", "1") {
			}
		}
	}, mc.Cost{Loads: 1, TableReads: 1}, 0)
	unique := indexed(shardedregistry.Config[string, int]{UniqueIndexes: indexes{"digit": digits}})
	unique.Put("a", 1)
	unique.Put("b", 2)
	for _, c := range []struct {
		name string
		do   func()
		want mc.Cost
	}{
		{"Put that gains a unique value", func() { unique.Put("a", 3) }, mc.Cost{Loads: 5, Stores: 1, RMWs: 2, Blocking: 2, TableReads: 5, TableWrites: 2}},
		{"Put that gains one that is taken", func() { unique.Put("a", 2) }, mc.Cost{Loads: 6, Blocking: 2, TableReads: 3}},
		{"Delete, and Create", func() { unique.Delete("a"); unique.Create("a", 1) }, mc.Cost{Loads: 13, Stores: 1, RMWs: 5, Blocking: 2, TableReads: 6, TableWrites: 4}},
		{"LookupBy", func() { unique.LookupBy("digit", "2") }, mc.Cost{Loads: 3, TableReads: 2}},
	} {
		if got := mc.Measure(c.do); got != c.want {
			t.Errorf("%s costs %v, want %v", c.name, got, c.want)
		}
	}
}

// What a change costs while somebody watches or waits. Without, it is one load
// more: see TestCosts.
func TestWatchCosts(t *testing.T) {
	put := func(r *names) mc.Cost { return mc.Measure(func() { r.Put("a", 8) }) }
	check := func(name string, got, want mc.Cost) {
		t.Helper()
		if got != want {
			t.Errorf("a Put %s costs %v, want %v", name, got, want)
		}
	}

	r := newNames()
	w := shardedregistry.Subscribe(r)
	r.Put("a", 8)
	check("of which a watcher has a notification", put(r), mc.Cost{Loads: 7, RMWs: 1, TableReads: 2})
	w.Drain()
	check("of which a watcher is told", put(r), mc.Cost{Loads: 9, RMWs: 3, TableReads: 2})
	w.Drain()
	woken := w.Doze()
	r.Put("a", 8)
	if !woken() {
		t.Error("a Put did not wake a watcher that slept")
	}
	w.Drain()
	check("of which a watcher is told that has slept", put(r), mc.Cost{Loads: 9, RMWs: 3, TableReads: 2})
	w.Drain()
	second := shardedregistry.Subscribe(r)
	r.Put("a", 8)
	w.Drain()
	second.Drain()
	check("of which two watchers are told", put(r), mc.Cost{Loads: 13, RMWs: 5, TableReads: 2})
	check("of which two watchers have notifications", put(r), mc.Cost{Loads: 9, RMWs: 1, TableReads: 2})
	second.Leave()
	w.Leave()
	check("when they have left", put(r), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1})

	leave := shardedregistry.Await(r)
	check("while others wait for another key", put(r), mc.Cost{Loads: 5, RMWs: 1, TableReads: 2})
	leave()
	check("when nobody waits", put(r), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1})
}

// A loop looks for keys that it need not keep when it keeps 64, and then when that has doubled.
func TestWatchSweepCosts(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	var w shardedregistry.Watcher[string, int]
	mc.Measure(func() { w = shardedregistry.Subscribe(&r) })
	for i := range 300 {
		r.Put(fmt.Sprint(i), i)
		want := uint64(1)
		if i == 64 || i == 128 || i == 256 {
			want += uint64(i)
		}
		if got := mc.Measure(func() { w.Drain() }).TableReads; uint64(got) != want {
			t.Errorf("the look at key %d takes %d look-ups, want %d", i, got, want)
		}
	}
	w.Leave()
}
