//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// What others find when an operation stalls halfway: one order of steps each, of those of which the
// model checker tries all.

// verbs change what a key holds, or create or delete it, each in its own way.
var verbs = map[string]func(r *shardedregistry.Registry[string, int], key string, version shardedregistry.Version) error{
	"Put": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		_, err := r.Put(key, 9)
		return err
	},
	"Update": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		_, err := r.Update(key, func(int) (int, error) { return 9, nil })
		return err
	},
	"UpdateIf": func(r *shardedregistry.Registry[string, int], key string, version shardedregistry.Version) error {
		_, err := r.UpdateIf(key, version, 9)
		return err
	},
	"Compute": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		_, err := createOrUpdate(r, key, func(int, bool) (int, error) { return 9, nil })
		return err
	},
	"Transact": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		return r.Transact(func(tx *shardedregistry.Tx[string, int]) error { return tx.Put(key, 9) })
	},
	"Replace": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		all := maps.Collect(r.All())
		all[key] = 9
		return r.Replace(maps.All(all), func(a, b int) bool { return a == b })
	},
	"Delete": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		if _, ok := r.Delete(key); !ok {
			return shardedregistry.ErrNotFound
		}
		return nil
	},
	"DeleteIf": func(r *shardedregistry.Registry[string, int], key string, version shardedregistry.Version) error {
		return r.DeleteIf(key, version)
	},
	"DeleteOp": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		_, _, err := r.Compute(key, func(int, bool) (int, shardedregistry.ComputeOp, error) { return 0, shardedregistry.DeleteOp, nil })
		return err
	},
	"DeleteFunc": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		if n := r.DeleteFunc(func(k string, _ int) bool { return k == key }); n != 1 {
			return fmt.Errorf("%d keys are deleted", n)
		}
		return nil
	},
	"Transact, Delete": func(r *shardedregistry.Registry[string, int], key string, _ shardedregistry.Version) error {
		return r.Transact(func(tx *shardedregistry.Tx[string, int]) error { tx.Delete(key); return nil })
	},
}

// An owner that stalls when it has stored the intent for one of its keys delays nobody: whoever
// wants to change that key finishes the transaction, and what it does comes after.
func TestIntentInTheWay(t *testing.T) {
	for _, settings := range []config{{}, {History: 16}} {
		settings.Shards = 1
		for name, verb := range verbs {
			r := shardedregistry.MustNew(settings)
			first := mustPut(t, r, "a", 1)
			lower, higher := "a", "b"
			for i := 0; shardedregistry.Hash(r, higher) < shardedregistry.Hash(r, lower); i++ {
				higher = key(i)
			}
			rest := shardedregistry.GivenUp(r, "a", higher, 2)
			if v, ok := r.Get("a"); !ok || v != 1 {
				t.Fatalf("%s: before the transaction has committed, a is %d, %v", name, v, ok)
			}
			if err := verb(r, "a", first); err != nil && !errors.Is(err, shardedregistry.ErrConflict) {
				t.Errorf("%s of a key with an intent: %v", name, err)
			}
			rest()
			want := map[string]int{"a": 9, higher: 2} // the transaction, and then the verb
			switch name {
			case "UpdateIf", "DeleteIf": // of a version that the transaction has replaced
				want["a"] = 2
			case "Delete", "DeleteOp", "DeleteFunc", "Transact, Delete":
				delete(want, "a")
			case "Replace": // which sees the other key perhaps not yet
				if _, ok := r.Get(higher); !ok {
					delete(want, higher)
				}
			}
			if got := maps.Collect(r.All()); !maps.Equal(got, want) || r.Len() != len(want) {
				t.Errorf("%s leaves %v, and Len is %d; want %v", name, got, r.Len(), want)
			}
			if n := shardedregistry.Intents(r); n != 0 || shardedregistry.Linked(r) != len(want) {
				t.Errorf("%s: %d intents and %d cells are left", name, n, shardedregistry.Linked(r))
			}
		}
	}
}

// An undecided intent stands for what the key held: who only reads the key goes on beside it.
func TestReadersOfAnIntent(t *testing.T) {
	r := shardedregistry.MustNew(config{Shards: 1})
	mustPut(t, r, "a", 1)
	higher := "b"
	for i := 0; shardedregistry.Hash(r, higher) < shardedregistry.Hash(r, "a"); i++ {
		higher = key(i)
	}
	ran := 0
	rest := shardedregistry.GivenUp(r, "a", higher, 2)
	if err := r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
		ran++
		tx.Get("a")
		tx.Get("d") // what was read before is as it was: another's intent stands for it
		return nil
	}); err != nil || ran != 1 {
		t.Errorf("a transaction that reads beside an undecided one ran %d times: %v", ran, err)
	}
	rest()
	wantValue(t, r, "a", 1)
}

// A cell stays in the table until its deleter has told the watchers, whoever else has done with it.
func TestTidyWaitsForTheDeleter(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	w := shardedregistry.Subscribe(&r)
	mustPut(t, &r, "a", 1)
	w.Drain() // so that the key has a subscription
	rest := shardedregistry.Kill(&r, "a")
	shardedregistry.Tidy(&r, "a") // the end of a snapshot
	rest()
	if got := w.Drain(); len(got) != 1 || !got[0].Deleted {
		t.Errorf("the watcher is told %v, want the deletion", got)
	}
	w.Leave()
	if n := shardedregistry.Traces(&r); n != 0 {
		t.Errorf("%d traces are left", n)
	}
}

// A cell stays in the table until the watcher that has taken the notification has looked.
func TestTidyWaitsForTheWatcher(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	w := shardedregistry.Subscribe(&r)
	mustPut(t, &r, "a", 1)
	w.Drain()
	r.Delete("a")
	look := w.Take()
	shardedregistry.Tidy(&r, "a")
	if e, ok := look(); !ok || !e.Deleted {
		t.Errorf("the watcher finds %v, %v; want the deletion", e, ok)
	}
	w.Leave()
	if n := shardedregistry.Traces(&r); n != 0 {
		t.Errorf("%d traces are left", n)
	}
}

// A watcher that meets a change which has no date yet gives it one, before it yields it.
func TestWatcherDatesWhatItYields(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	w := shardedregistry.Subscribe(&r)
	taking := shardedregistry.Join(&r)
	rest := shardedregistry.Stored(&r, "a", 2)
	shardedregistry.Changed(&r, "a") // by another teller
	if got := w.Drain(); len(got) != 1 || got[0].Value != 2 || !shardedregistry.IsDated(&r, "a") {
		t.Errorf("%v is yielded, dated: %v", got, shardedregistry.IsDated(&r, "a"))
	}
	rest()
	taking.Leave()
	w.Leave()
}

// A creator that finds that another has come before it, and stalls, gives the other's record its date: a
// snapshot that has what the creator does next has that, too.
func TestCreatorsDateWhatTheyFind(t *testing.T) {
	r := shardedregistry.MustNew(config{Shards: 1})
	taking := shardedregistry.Join(r)
	var rest func()
	v, created, err := r.GetOrCreate("a", func() (int, error) {
		rest = shardedregistry.Published(r, "a", 1)
		return 2, nil
	})
	if v != 1 || created || err != nil {
		t.Errorf("GetOrCreate = %d, %v, %v", v, created, err)
	}
	mustPut(t, r, "b", 3)
	if !taking.Collect() {
		t.Error("the collector is not sure")
	}
	wantSnapshot(t, taking.Found(), map[string]int{"a": 1, "b": 3})
	rest()
	taking.Leave()
}

// Each operation that begins when a snapshot is being taken dates what it stores, so the collector
// need not look again, and what came after its cut is not in the snapshot.
func TestWritersDateWhatTheyStore(t *testing.T) {
	creations := map[string]func(r *shardedregistry.Registry[string, int], key string){
		"Create":      func(r *shardedregistry.Registry[string, int], key string) { r.Create(key, 9) },
		"Put":         func(r *shardedregistry.Registry[string, int], key string) { r.Put(key, 9) },
		"GetOrCreate": func(r *shardedregistry.Registry[string, int], key string) { r.GetOrCreate(key, answer(9, nil)) },
		"Transact": func(r *shardedregistry.Registry[string, int], key string) {
			r.Transact(func(tx *shardedregistry.Tx[string, int]) error { return tx.Put(key, 9) })
		},
	}
	for _, settings := range []config{{}, {History: 16}} {
		settings.Shards = 1
		for name, verb := range verbs {
			r := shardedregistry.MustNew(settings)
			version := mustPut(t, r, "a", 1)
			taking := shardedregistry.Join(r)
			if err := verb(r, "a", version); err != nil {
				t.Fatal(name, ": ", err)
			}
			if !taking.Collect() {
				t.Errorf("%s has stored what is not dated", name)
			}
			wantSnapshot(t, taking.Leave(), maps.Collect(r.All()))

			r = shardedregistry.MustNew(settings)
			version = mustPut(t, r, "a", 1)
			taking = shardedregistry.Join(r)
			taking.Cut()
			if err := verb(r, "a", version); err != nil {
				t.Fatal(name, ": ", err)
			}
			if !taking.Look() {
				t.Errorf("%s has stored what is not dated, after the cut", name)
			}
			wantSnapshot(t, taking.Leave(), map[string]int{"a": 1})
		}
		for name, create := range creations {
			r := shardedregistry.MustNew(settings)
			taking := shardedregistry.Join(r)
			taking.Cut()
			create(r, "a")
			if !taking.Look() {
				t.Errorf("%s has stored what is not dated", name)
			}
			wantSnapshot(t, taking.Leave(), nil)
		}
	}
}

// A function that creates a key may take long: whether a snapshot is being taken is asked afterwards.
func TestCreatorsAskAfterTheirFunction(t *testing.T) {
	for name, create := range map[string]func(r *shardedregistry.Registry[string, int], fn func()){
		"GetOrCreate": func(r *shardedregistry.Registry[string, int], fn func()) {
			r.GetOrCreate("a", func() (int, error) { fn(); return 1, nil })
		},
		"Compute": func(r *shardedregistry.Registry[string, int], fn func()) {
			createOrUpdate(r, "a", func(int, bool) (int, error) { fn(); return 1, nil })
		},
		"Transact": func(r *shardedregistry.Registry[string, int], fn func()) {
			r.Transact(func(tx *shardedregistry.Tx[string, int]) error { fn(); return tx.Put("a", 1) })
		},
	} {
		var (
			r      shardedregistry.Registry[string, int]
			taking shardedregistry.Taking[string, int]
		)
		create(&r, func() { taking = shardedregistry.Join(&r) })
		if !taking.Collect() {
			t.Errorf("%s has stored what is not dated", name)
		}
		wantSnapshot(t, taking.Leave(), map[string]int{"a": 1})
	}
}

// A writer that has asked before a snapshot began stores what is not dated. The collector cannot
// tell on which side of its cut that is, and makes another; also if a dated record is above it.
func TestWriterAskedBeforeTheJoin(t *testing.T) {
	for name, more := range map[string]func(r *shardedregistry.Registry[string, int]){
		"alone":         func(*shardedregistry.Registry[string, int]) {},
		"then changed":  func(r *shardedregistry.Registry[string, int]) { mustPut(t, r, "a", 3) },
		"then deleted":  func(r *shardedregistry.Registry[string, int]) { r.Delete("a") },
		"then created":  func(r *shardedregistry.Registry[string, int]) { r.Delete("a"); mustPut(t, r, "a", 4) },
		"other changed": func(r *shardedregistry.Registry[string, int]) { mustPut(t, r, "b", 3) },
	} {
		r := shardedregistry.MustNew(config{Shards: 1})
		mustPut(t, r, "a", 1)
		mustPut(t, r, "b", 1)
		store := shardedregistry.Drafted(r, "a", 2)
		taking := shardedregistry.Join(r)
		taking.Cut()
		store()()
		more(r)
		if taking.Look() {
			t.Errorf("%s: the collector is sure of what was stored after its cut", name)
		}
		if !taking.Collect() {
			t.Errorf("%s: a second cut was not enough", name)
		}
		wantSnapshot(t, taking.Leave(), maps.Collect(r.All()))
		if n := shardedregistry.Kept(r); n != 0 {
			t.Errorf("%s: %d records are kept", name, n)
		}
	}
}

// Likewise a deleter; its cell leaves the table at once, and another may be there when the collector
// looks.
func TestDeleterAskedBeforeTheJoin(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := shardedregistry.MustNew(config{Shards: 1})
		mustPut(t, r, "a", 1)
		kill := shardedregistry.DraftKill(r, "a")
		taking := shardedregistry.Join(r)
		taking.Cut()
		kill()()
		if again {
			mustPut(t, r, "a", 2)
		}
		if taking.Look() {
			t.Errorf("created again: %v: the collector is sure of what was deleted after its cut", again)
		}
		if !taking.Collect() {
			t.Errorf("created again: %v: a second cut was not enough", again)
		}
		wantSnapshot(t, taking.Leave(), maps.Collect(r.All()))
		if n := shardedregistry.Linked(r); n != r.Len() {
			t.Errorf("%d cells are left", n)
		}
	}
}

// A transaction that puts its cell in the place of a dead one keeps what a snapshot needs of it, in
// the deleter's stead.
func TestTransactOverAStalledDeletion(t *testing.T) {
	for _, watched := range []bool{false, true} {
		r := shardedregistry.MustNew(config{Shards: 1})
		mustPut(t, r, "a", 1)
		var w shardedregistry.Watcher[string, int]
		if watched {
			w = shardedregistry.Subscribe(r)
			mustPut(t, r, "a", 1)
			w.Drain()
		}
		taking := shardedregistry.Join(r)
		taking.Cut()
		rest := shardedregistry.Kill(r, "a")
		if err := r.Transact(func(tx *shardedregistry.Tx[string, int]) error { return tx.Put("a", 2) }); err != nil {
			t.Fatal(err)
		}
		rest()
		if !taking.Look() {
			t.Error("the collector is not sure")
		}
		wantSnapshot(t, taking.Leave(), map[string]int{"a": 1})
		wantValue(t, r, "a", 2)
		if watched {
			if got := w.Drain(); len(got) == 0 || got[len(got)-1].Value != 2 {
				t.Errorf("the watcher is told %v", got)
			}
			w.Leave()
		}
		if n := shardedregistry.Traces(r) + shardedregistry.Kept(r); n != 0 {
			t.Errorf("%d traces are left", n)
		}
	}
}

// Snapshots leave nothing: writers are no longer told of them, and what was deleted meanwhile is
// garbage, though the snapshot is in use.
func TestSnapshotsLeaveNothing(t *testing.T) {
	var r shardedregistry.Registry[string, *[1 << 10]int]
	var gone []weak.Pointer[[1 << 10]int]
	for i := range 64 {
		value := new([1 << 10]int)
		r.Put(key(i), value)
		if i%2 == 0 {
			gone = append(gone, weak.Make(value))
		}
	}
	taking := shardedregistry.Join(&r)
	for i := range 64 {
		if i%2 == 0 {
			r.Delete(key(i))
		}
	}
	taking.Collect()
	s := taking.Leave()
	if shardedregistry.Snapshotting(&r) {
		t.Error("writers are told of a snapshot that has been taken")
	}
	runtime.GC()
	if slices.ContainsFunc(gone, func(p weak.Pointer[[1 << 10]int]) bool { return p.Value() != nil }) {
		t.Error("a snapshot keeps what was deleted before its cut")
	}
	if s.Len() != 32 {
		t.Errorf("the snapshot has %d keys", s.Len())
	}
	runtime.KeepAlive(s)
}

// The snapshot of a loop with filters keeps nothing of the keys that they do not accept.
func TestFilteredSnapshotsKeepNothingElse(t *testing.T) {
	var r shardedregistry.Registry[string, *[1 << 10]int]
	var gone []weak.Pointer[[1 << 10]int]
	for i := range 64 {
		value := new([1 << 10]int)
		r.Put(key(i), value)
		if i > 0 {
			gone = append(gone, weak.Make(value))
		}
	}
	for s := range r.WatchSnapshot(t.Context(), shardedregistry.Keys(key(0))) {
		r.Clear()
		runtime.GC()
		if slices.ContainsFunc(gone, func(p weak.Pointer[[1 << 10]int]) bool { return p.Value() != nil }) {
			t.Error("a snapshot keeps values of keys that it does not have")
		}
		if s.Len() != 1 {
			t.Errorf("the snapshot has %d keys", s.Len())
		}
		break
	}
}

// Last covers deletions, also one that a watcher has not come to, whose cell is still there, and
// those in every shard.
func TestLastCoversDeletions(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	w := shardedregistry.Subscribe(&r)
	mustPut(t, &r, "a", 1)
	was, _ := r.Delete("a")
	if last := r.Snapshot().Last(); last < was.Version+1 {
		t.Errorf("Last = %d, and a was deleted at %d", last, was.Version+1)
	}
	w.Leave()

	const shards = 8
	seen := map[uint64]bool{}
	for i := 0; len(seen) < shards; i++ {
		r := shardedregistry.MustNew(config{Shards: shards})
		seen[shardedregistry.Hash(r, key(i))>>(64-3)] = true
		mustPut(t, r, key(i), 1)
		mustPut(t, r, key(i), 2)
		r.Delete(key(i))
		if last := r.Snapshot().Last(); last != 3 {
			t.Fatalf("Last = %d, and a key was deleted at 3", last)
		}
	}
}

// A change that its maker has not yet remembered comes before what others do to the key then,
// whichever way they do it.
func TestChangesAreRememberedInOrder(t *testing.T) {
	for name, verb := range verbs {
		r := remembering(16)
		begin := r.Revision()
		mustPut(t, r, "a", 1)
		late := shardedregistry.Stored(r, "a", 2)
		if err := verb(r, "a", 2); err != nil {
			t.Fatal(name, ": ", err)
		}
		want := []string{"1: a=1@1", "2: a=2@2", "3: a=9@3"}
		if _, ok := r.Get("a"); !ok {
			want[2] = "3: a=2 gone@3"
		}
		wantSince(t, r, begin, want...)
		late()
		wantSince(t, r, begin, want...)
	}

	r := shardedregistry.MustNew(config{Shards: 1, History: 16, TTL: lasting(0).TTL})
	shardedregistry.PauseTimers(r)
	begin := r.Revision()
	mustPut(t, r, "a", 1)
	late := shardedregistry.Stored(r, "a", 2)
	shardedregistry.Expire(r, "a")
	late()
	wantSince(t, r, begin, "1: a=1@1", "2: a=2@2", "3: a=2 gone@3")
}

// A transaction that creates a key again remembers the deletion first, for a deleter that stalls, also
// where a snapshot needs the dead cell.
func TestTransactRemembersAStalledDeletion(t *testing.T) {
	r := remembering(16)
	begin := r.Revision()
	mustPut(t, r, "a", 1)
	taking := shardedregistry.Join(r)
	rest := shardedregistry.Kill(r, "a")
	if err := r.Transact(func(tx *tx) error { return tx.Put("a", 2) }); err != nil {
		t.Fatal(err)
	}
	rest()
	taking.Leave()
	wantSince(t, r, begin, "1: a=1@1", "2: a=1 gone@2", "3: a=2@3")
}

// A loop sleeps when another has put a change into the changelog, and stalled before it woke anybody:
// the maker of the change wakes it.
func TestMakerWakesLoops(t *testing.T) {
	r := remembering(16)
	mustPut(t, r, "a", 1)
	loop := shardedregistry.OpenRevisions(r, r.Revision())
	rest := shardedregistry.Stored(r, "a", 2)
	woken := loop.Doze()
	shardedregistry.Finished(r, "a")
	rest()
	if !woken() {
		t.Error("the loop sleeps on")
	}
	if c, err := loop.Next(); c.Value != 2 || err != nil {
		t.Errorf("the loop has %v, %v", c, err)
	}
}

// Two transactions that are in the way of one another both end, whatever the order of their keys, also
// if keys have the same hash, so that there is no order: then the one that stalls is aborted.
func TestTransactionsMeet(t *testing.T) {
	for _, hash := range []func(string) uint64{
		func(string) uint64 { return 1 << 60 },
		func(k string) uint64 { return uint64(k[0]) << 50 },
	} {
		for _, order := range [][]string{{"a", "b"}, {"b", "a"}, {"a", "b", "c"}, {"c", "b", "a"}} {
			r := shardedregistry.MustNew(config{Shards: 1})
			shardedregistry.SetHash(r, hash)
			mustPut(t, r, "a", 1)
			rest := shardedregistry.GivenUp(r, "a", "b", 2)
			if err := r.Transact(func(tx *tx) error {
				for _, k := range order {
					if err := tx.Put(k, 3); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			rest()
			for _, k := range order {
				wantValue(t, r, k, 3)
			}
			if n := shardedregistry.Intents(r); n != 0 || r.Len() != len(order) || shardedregistry.Linked(r) != r.Len() {
				t.Errorf("%v: %d intents are left, Len is %d, %d cells", order, n, r.Len(), shardedregistry.Linked(r))
			}
		}
	}
}

// Likewise where two keys have one hash, and each transaction uses a third key between them: both abort
// what is in the way, or each would help the other for ever.
func TestTransactionsMeetAroundAThirdKey(t *testing.T) {
	r := shardedregistry.MustNew(config{Shards: 1})
	shardedregistry.SetHash(r, func(k string) uint64 {
		if k == "b" {
			return 1 << 61
		}
		return 1 << 60
	})
	stores := func(value int, keys ...string) func(tx *tx) error {
		return func(tx *tx) (err error) {
			for _, k := range keys {
				err = errors.Join(err, tx.Put(k, value))
			}
			return err
		}
	}
	for _, k := range []string{"a", "b", "c"} {
		mustPut(t, r, k, 1)
	}
	decide := shardedregistry.Started(r, stores(2, "a", "b", "c"))
	if err := r.Transact(stores(3, "c", "b", "a")); err != nil {
		t.Fatal(err)
	}
	decide()()
	for _, k := range []string{"a", "b", "c"} {
		wantValue(t, r, k, 3)
	}
	if n := shardedregistry.Intents(r); n != 0 {
		t.Errorf("%d intents are left", n)
	}
}

// A transaction that has committed and stalls has its date before others change its keys, also one
// that it has only read: a snapshot that contains the later change contains the transaction.
func TestCommittedBeforeWhatFollows(t *testing.T) {
	for name, follow := range map[string]func(r *shardedregistry.Registry[string, int]){
		"of the key that was read":   func(r *shardedregistry.Registry[string, int]) { mustPut(t, r, "a", 3) },
		"of the key that was stored": func(r *shardedregistry.Registry[string, int]) { mustPut(t, r, "b", 3) },
		"deletion":                   func(r *shardedregistry.Registry[string, int]) { r.Delete("a") },
	} {
		r := shardedregistry.MustNew(config{Shards: 1})
		mustPut(t, r, "a", 1)
		mustPut(t, r, "b", 1)
		taking := shardedregistry.Join(r)
		rest := shardedregistry.Committed(r, "a", "b", 2)
		follow(r)
		taking.Cut()
		if !taking.Look() {
			t.Errorf("%s: the collector is not sure", name)
		}
		found := maps.Collect(taking.Found().All())
		rest()
		taking.Leave()
		if want := maps.Collect(r.All()); !maps.Equal(found, want) {
			t.Errorf("%s: the snapshot has %v, want %v", name, found, want)
		}
	}
}

// A transaction that cannot commit leaves no trace, neither of what it has created nor in the place
// of what was deleted.
func TestTransactAborts(t *testing.T) {
	for _, was := range []string{"present", "absent", "deleted, and a watcher has not come to it"} {
		var (
			r    *shardedregistry.Registry[string, int]
			runs int
			hash = func(k string) uint64 { return uint64(k[0]) << 50 } // in the order of the alphabet
		)
		r = shardedregistry.MustNew(config{Shards: 1, Check: func(k string, v int) error {
			if v == 9 && k == "a" { // when the transaction has read all, and before it stores anything
				mustPut(t, r, "b", 5)
			}
			return nil
		}})
		shardedregistry.SetHash(r, hash)
		w := shardedregistry.Subscribe(r)
		mustPut(t, r, "b", 1)
		if was != "absent" {
			mustPut(t, r, "a", 1)
		}
		w.Drain()
		if was != "present" {
			r.Delete("a")
		}
		want := maps.Collect(r.All())
		want["b"] = 5
		err := r.Transact(func(tx *tx) error {
			if runs++; runs == 2 {
				return errTest
			}
			return errors.Join(tx.Put("a", 9), tx.Put("b", 9))
		})
		if err != errTest || runs != 2 {
			t.Errorf("%s: Transact = %v after %d runs", was, err, runs)
		}
		if got := maps.Collect(r.All()); !maps.Equal(got, want) || r.Len() != len(want) {
			t.Errorf("%s: %v is left, and Len is %d; want %v", was, got, r.Len(), want)
		}
		if n := shardedregistry.Intents(r); n != 0 {
			t.Errorf("%s: %d intents are left", was, n)
		}
		w.Drain()
		if n := shardedregistry.Linked(r); n != len(want) {
			t.Errorf("%s: %d cells are left of %d keys", was, n, len(want))
		}
		w.Leave()
	}
}

// A writer that stalls until its key has been deleted puts it into no timer's schedule.
func TestLateWriterOfWhatExpires(t *testing.T) {
	r := shardedregistry.MustNew(lasting(time.Hour))
	mustPut(t, r, "a", 1)
	rest := shardedregistry.Stored(r, "a", 2)
	r.Delete("a")
	rest()
	if n, _ := shardedregistry.Scheduled(r); n != 0 {
		t.Errorf("%d cells are in a schedule", n)
	}
}

// A change that is in its slot of the changelog, and not yet finished, is finished by whoever needs
// that: the next writer, and a loop that finds its own place overtaken.
func TestUnfinishedChange(t *testing.T) {
	r := remembering(4)
	begin := r.Revision()
	mustPut(t, r, "a", 1)
	rest := shardedregistry.Stored(r, "a", 2)
	shardedregistry.Unfinished(r, "a")
	within(t, func() { mustPut(t, r, "b", 3) })
	wantSince(t, r, begin, "1: a=1@1", "2: a=2@2", "3: b=3@1")
	rest()
	wantSince(t, r, begin, "1: a=1@1", "2: a=2@2", "3: b=3@1")

	mustPut(t, r, "b", 4)
	rest = shardedregistry.Stored(r, "b", 5)
	shardedregistry.Unfinished(r, "b") // in the slot of the oldest
	_, err := since(r, begin)
	var compacted *shardedregistry.CompactedError
	if !errors.As(err, &compacted) || compacted.Oldest != begin+1 {
		t.Errorf("error %v, want one that says that the oldest is after %d", err, begin+1)
	}
	rest()
	wantSince(t, r, 0, fmt.Sprint(begin+2, ": a=2@2"), fmt.Sprint(begin+3, ": b=3@1"), fmt.Sprint(begin+4, ": b=4@2"), fmt.Sprint(begin+5, ": b=5@3"))
}

// A loop can begin where a CompactedError says, however far the one that failed was behind, also if a writer
// has overwritten the oldest change and stalled before it moved the last revision on.
func TestLoopsCanBeginAtTheOldest(t *testing.T) {
	for late := range 4 {
		r := remembering(4)
		begin := r.Revision()
		for i := range 8 {
			mustPut(t, r, "a", i)
		}
		shardedregistry.Stored(r, "a", 8)
		shardedregistry.Unfinished(r, "a") // in the slot of the oldest
		_, err := since(r, begin+shardedregistry.Revision(late))
		var compacted *shardedregistry.CompactedError
		if !errors.As(err, &compacted) {
			t.Fatalf("after %d: error %v, want that changes are forgotten", late, err)
		}
		if _, err := since(r, compacted.Oldest); err != nil {
			t.Errorf("after %d: a loop could begin after %d, and then %v", late, compacted.Oldest-begin, err)
		}
	}
}

// A loop that is about to sleep looks once more: what has changed since it looked woke nobody.
func TestLoopsLookBeforeTheySleep(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := remembering(16)
	w, revisions := shardedregistry.Subscribe(r), shardedregistry.OpenRevisions(r, r.Revision())
	mustPut(t, r, "a", 1)
	w.Sleep(ctx)
	revisions.Sleep(ctx)
	if ctx.Err() != nil {
		t.Error("a loop has overslept a change")
	}
	w.Leave()
}

// A change that comes when the watcher has taken its notification brings another: the watcher may
// have read the key already.
func TestChangeAfterTheNotificationWasTaken(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	w := shardedregistry.Subscribe(&r)
	mustPut(t, &r, "a", 1)
	look := w.Take()
	mustPut(t, &r, "a", 2)
	if n := w.Notifications(); n != 1 {
		t.Errorf("%d notifications are in the inbox, want 1", n)
	}
	if e, ok := look(); !ok || e.Value != 2 {
		t.Errorf("%v, %v is yielded", e, ok)
	}
	if got := w.Drain(); len(got) != 0 {
		t.Errorf("%v is yielded again", got)
	}
	w.Leave()
}

// A goroutine parks in the middle of a transaction, with its intent in one of the keys: all changes
// of the key return on another goroutine.
func TestParkedTransaction(t *testing.T) {
	for name, verb := range verbs {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		shardedregistry.SetHash(r, func(k string) uint64 { return uint64(k[0]) << 50 })
		mustPut(t, r, "a", 1)
		parked, goOn, returned := make(chan bool), make(chan bool), make(chan bool)
		go func() {
			defer close(returned)
			rest := shardedregistry.GivenUp(r, "a", "b", 2)
			close(parked)
			<-goOn
			rest()
		}()
		<-parked
		within(t, func() {
			if _, ok := r.Get("a"); !ok {
				t.Errorf("beside %s: a is gone", name)
			}
			e, _ := r.Lookup("a")
			if err := verb(r, "a", e.Version); err != nil && !errors.Is(err, shardedregistry.ErrConflict) {
				t.Errorf("%s: %v", name, err)
			}
			mustPut(t, r, "a", 3)
		})
		close(goOn)
		<-returned
		wantValue(t, r, "a", 3)
		if n := shardedregistry.Intents(r); n != 0 {
			t.Errorf("beside %s: %d intents are left", name, n)
		}
	}
}

// A deletion comes before the creation that follows, also if its deleter stalls before it was dated and the creator has not seen
// that a snapshot is being taken: so a later cut shows neither, if the key is deleted again.
func TestDeletionIsDatedByItsSuccessor(t *testing.T) {
	var r *shardedregistry.Registry[string, int]
	var taking shardedregistry.Taking[string, int]
	var rest func()
	r = shardedregistry.MustNew(shardedregistry.Config[string, int]{Check: func(_ string, v int) error {
		if v == 5 && rest == nil { // the creator has drafted its record
			mustPut(t, r, "a", 7)
			taking = shardedregistry.Join(r)
			rest = shardedregistry.Kill(r, "a")
		}
		return nil
	}})
	if _, err := r.Create("a", 5); err != nil {
		t.Fatal(err)
	}
	r.Delete("a")
	taking.Cut()
	shardedregistry.Tidy(r, "a")
	taking.Look()
	if e, ok := taking.Found().Lookup("a"); ok {
		t.Errorf("a snapshot has %v, which was deleted twice before", e)
	}
	rest()
	taking.Leave()
	if n := shardedregistry.Linked(r); n != 0 {
		t.Errorf("%d cells are linked", n)
	}
}

// What a snapshot says of versions is that of records, also where it meets intents.
func TestSnapshotLastBesideIntents(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{})
	mustPut(t, r, "a", 1)
	mustPut(t, r, "b", 1)
	rest := shardedregistry.Committed(r, "a", "b", 2)
	if last := r.Snapshot().Last(); last != 2 {
		t.Errorf("the last version is %d, want 2", last)
	}
	rest()
}
