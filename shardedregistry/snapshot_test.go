//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"maps"
	"math"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// wantSnapshot fails the test unless s contains exactly want, by every method.
func wantSnapshot[K, V comparable](t testing.TB, s *shardedregistry.Snapshot[K, V], want map[K]V) {
	t.Helper()
	if got := maps.Collect(s.All()); !maps.Equal(got, want) || s.Len() != len(want) {
		t.Fatalf("All yields %v and Len is %d, want %v", got, s.Len(), want)
	}
	keys := map[K]bool{}
	for k := range s.Keys() {
		if _, ok := want[k]; !ok || keys[k] {
			t.Fatalf("Keys yields %v, of %v", k, want)
		}
		keys[k] = true
	}
	if len(keys) != len(want) {
		t.Fatalf("Keys yields %d keys, want %d", len(keys), len(want))
	}
	n := 0
	for e := range s.Entries() {
		if found, ok := s.Lookup(e.Key); !ok || found != e || e.Value != want[e.Key] || e.Version == 0 {
			t.Fatalf("Entries yields %v, Lookup finds %v, %v; want value %v", e, found, ok, want[e.Key])
		}
		if v, ok := s.Get(e.Key); !ok || v != e.Value {
			t.Fatalf("Get(%v) = %v, %v; want %v", e.Key, v, ok, e.Value)
		}
		n++
	}
	if n != len(want) {
		t.Fatalf("Entries yields %d entries, want %d", n, len(want))
	}
}

func TestSnapshot(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	want := map[string]int{}
	for i := range 1000 {
		mustPut(t, &r, key(i), -i)
		mustPut(t, &r, key(i), i)
		want[key(i)] = i
	}
	for i := range 300 {
		r.Delete(key(3 * i))
		delete(want, key(3*i))
	}
	s := r.Snapshot()
	wantSnapshot(t, s, want)
	for e := range s.Entries() {
		if now, _ := r.Lookup(e.Key); now != e {
			t.Fatalf("the snapshot has %v where the registry has %v", e, now)
		}
	}
	if v, ok := s.Get(key(0)); ok || v != 0 {
		t.Errorf("Get of a deleted key = %v, %v", v, ok)
	}
	for range s.All() {
		break
	}
	for range s.Entries() {
		break
	}
}

func TestEmptySnapshot(t *testing.T) {
	var never shardedregistry.Registry[string, int]
	emptied := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, emptied, "a", 1)
	emptied.Delete("a")
	for name, s := range map[string]*shardedregistry.Snapshot[string, int]{
		"zero":           {},
		"never used":     never.Snapshot(),
		"never written":  shardedregistry.MustNew(shardedregistry.Config[string, int]{}).Snapshot(),
		"emptied":        emptied.Snapshot(),
		"emptied, again": emptied.Snapshot(),
	} {
		wantSnapshot(t, s, nil)
		if _, ok := s.Get("a"); ok {
			t.Errorf("%s: Get finds something", name)
		}
		if e, ok := s.Lookup("a"); ok || e.Version != 0 {
			t.Errorf("%s: Lookup finds %v", name, e)
		}
	}
}

// T23: a snapshot does not change with the registry, whatever happens to its
// keys, and neither does one that is taken of what was left of another.
func TestSnapshotNeverChanges(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	rounds := []map[string]int{}
	snapshots := []*shardedregistry.Snapshot[string, int]{}
	entries := []map[string]shardedregistry.Entry[string, int]{}
	for round := range 20 {
		for i := range 200 {
			switch k := key(i); (i + round) % 5 {
			case 0:
				r.Delete(k)
			case 1:
				r.Delete(k)
				mustPut(t, r, k, round)
			case 2:
				mustPut(t, r, k, round)
			case 3:
				r.Update(k, func(v int) (int, error) { return v + 1, nil })
			}
		}
		rounds = append(rounds, maps.Collect(r.All()))
		snapshots = append(snapshots, r.Snapshot())
		now := map[string]shardedregistry.Entry[string, int]{}
		for e := range r.Entries() {
			now[e.Key] = e
		}
		entries = append(entries, now)
	}
	for i, s := range snapshots {
		wantSnapshot(t, s, rounds[i])
		for k, e := range entries[i] {
			if got, _ := s.Lookup(k); got != e {
				t.Fatalf("snapshot %d has %v, want %v", i, got, e)
			}
		}
	}
	if n := shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d old records are kept", n)
	}
}

// Keys are normalised in snapshots too, and one that is none is absent.
func TestSnapshotKeys(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	mustPut(t, r, " Backup", 1)
	s := r.Snapshot()
	wantSnapshot(t, s, map[string]int{"backup": 1})
	if v, ok := s.Get("BACKUP "); !ok || v != 1 {
		t.Errorf("Get of another spelling = %v, %v", v, ok)
	}
	if _, ok := s.Get(""); ok {
		t.Error("Get finds what is no key")
	}

	var anything shardedregistry.Registry[any, int]
	mustPut(t, &anything, any("a"), 1)
	mustPut(t, &anything, any(2.5), 2)
	held := anything.Snapshot()
	wantSnapshot(t, held, map[any]int{"a": 1, 2.5: 2})
	for _, k := range []any{[]int{}, math.NaN(), nil, 2} {
		if _, ok := held.Get(k); ok {
			t.Errorf("Get finds %v", k)
		}
	}
}

// Keys whose hashes are equal are told apart.
func TestSnapshotOfEqualHashes(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 4})
	shardedregistry.SetHash(r, func(k int) uint64 { return uint64(k%2) << 63 })
	want := map[int]int{}
	for i := range 200 {
		mustPut(t, r, i, -i)
		want[i] = -i
	}
	s := r.Snapshot()
	wantSnapshot(t, s, want)
	if _, ok := s.Get(200); ok {
		t.Error("Get finds a key that is absent")
	}
}

// A snapshot may be taken from within a function and a loop's body, where it
// contains what the caller has done so far and not what it is about to do.
func TestSnapshotWithin(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	runs := 0
	_, err := r.Update("a", func(v int) (int, error) {
		runs++
		wantSnapshot(t, r.Snapshot(), maps.Collect(r.All()))
		if runs == 1 {
			mustPut(t, &r, "b", 1)
			wantSnapshot(t, r.Snapshot(), map[string]int{"a": v, "b": 1})
		}
		return v + 1, nil
	})
	if err != nil || runs != 1 {
		t.Fatalf("Update = %v after %d runs", err, runs)
	}
	for k := range r.All() {
		r.Delete(k)
		if _, ok := r.Snapshot().Get(k); ok {
			t.Errorf("a snapshot contains %s after its deletion", k)
		}
	}
	if n := shardedregistry.Linked(&r) + shardedregistry.Kept(&r); n != 0 {
		t.Errorf("%d cells or records are left", n)
	}
}

// A function that fails, panics or exits while a snapshot is being taken leaves
// nothing in it.
func TestSnapshotOfFailures(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	taking := shardedregistry.Join(&r)
	for _, end := range []func(){func() { panic(errTest) }, runtime.Goexit, func() {}} {
		for _, k := range []string{"a", "b"} {
			left(t, func() {
				createOrUpdate(&r, k, func(int, bool) (int, error) { end(); return 9, errTest })
			})
		}
	}
	if !taking.Collect() {
		t.Fatal("a second look was not enough")
	}
	wantSnapshot(t, taking.Leave(), map[string]int{"a": 1})
}

// A collector that stalls delays nobody, and keeps of each key no more than one
// record, however often the keys change, come and go.
func TestCollectorStalls(t *testing.T) {
	const keys, rounds = 50, 40
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	want := map[string]int{}
	for i := range keys {
		want[key(i)] = i
		mustPut(t, r, key(i), i)
	}
	taking := shardedregistry.Join(r)
	mustPut(t, r, key(0), 1000)
	want[key(0)] = 1000
	if !taking.Collect() {
		t.Fatal("a second look was not enough")
	}
	within(t, func() {
		for round := range rounds {
			for i := range 2 * keys { // half of them did not exist at the cut
				mustPut(t, r, key(i), -round)
				mustPut(t, r, key(i), -round)
				if round%2 == i%2 {
					r.Delete(key(i))
				}
			}
			if got := r.Snapshot(); got.Len() != r.Len() { // others come and go
				t.Fatalf("another snapshot has %d keys, want %d", got.Len(), r.Len())
			}
			if kept, linked := shardedregistry.Kept(r), shardedregistry.Linked(r); kept > keys || linked > 2*keys {
				t.Fatalf("%d records are kept and %d cells are linked in round %d, want at most %d and %d", kept, linked, round, keys, 2*keys)
			}
		}
		for i := range 2 * keys {
			r.Delete(key(i))
		}
	})
	if kept, linked := shardedregistry.Kept(r), shardedregistry.Linked(r); kept != keys || linked != keys {
		t.Errorf("%d records are kept and %d cells are linked, want the %d of the cut", kept, linked, keys)
	}
	if _, ok := r.Get(key(1)); ok || r.Len() != 0 {
		t.Errorf("a deleted key is present, or Len = %d", r.Len())
	}
	for k := range r.All() {
		t.Errorf("All yields %s, which was deleted", k)
	}
	wantSnapshot(t, taking.Leave(), want)
	if n := shardedregistry.Linked(r) + shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d cells or records are left", n)
	}
}

// A change that has been stored and not yet dated takes effect for all as soon
// as one has seen it, and its writer keeps nothing when it goes on at last.
func TestWriterStalls(t *testing.T) {
	for name, see := range map[string]func(r *shardedregistry.Registry[string, int]) int{
		"Get": func(r *shardedregistry.Registry[string, int]) int { v, _ := r.Get("a"); return v },
		"All": func(r *shardedregistry.Registry[string, int]) int { return maps.Collect(r.All())["a"] },
		"Create": func(r *shardedregistry.Registry[string, int]) int {
			if _, err := r.Create("a", 0); !errors.Is(err, shardedregistry.ErrExists) {
				t.Errorf("Create = %v", err)
			}
			return 2
		},
		"Snapshot": func(r *shardedregistry.Registry[string, int]) int { v, _ := r.Snapshot().Get("a"); return v },
	} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		mustPut(t, r, "a", 1)
		taking := shardedregistry.Join(r)
		rest := shardedregistry.Stored(r, "a", 2)
		if v := see(r); v != 2 {
			t.Errorf("%s sees %d, want 2", name, v)
		}
		mustPut(t, r, "b", 3)
		taking.Collect()
		s := taking.Leave()
		wantSnapshot(t, s, map[string]int{"a": 2, "b": 3})
		rest()
		if n := shardedregistry.Kept(r); n != 0 {
			t.Errorf("%s: %d records are kept", name, n)
		}
	}
}

// Keys that come between looks are found once, however many looks follow.
func TestSnapshotOfKeysThatCome(t *testing.T) {
	for _, before := range []int{0, 1, 50} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		want := map[string]int{}
		put := func(i int) {
			want[key(i)] = i
			mustPut(t, r, key(i), i)
		}
		for i := range before {
			put(2 * i)
		}
		taking := shardedregistry.Join(r)
		for i := range 50 {
			put(2*i + 1)
		}
		taking.Collect()
		taking.Collect()
		put(1000)
		taking.Collect()
		wantSnapshot(t, taking.Leave(), want)
	}
}

// A snapshot of keys that do not change hashes none.
func TestSnapshotOfQuietKeysHashesNone(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	hashed := 0
	shardedregistry.SetHash(r, func(k string) uint64 { hashed++; return uint64(len(k)) << 60 })
	for i := range 100 {
		mustPut(t, r, key(i), i)
	}
	hashed = 0
	if n := r.Snapshot().Len(); n != 100 || hashed != 0 {
		t.Errorf("it hashes %d times for %d keys", hashed, n)
	}
}

// The versions that a snapshot shows are those of the registry, across deletions
// that a collector keeps.
func TestSnapshotVersions(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	var last shardedregistry.Version
	for round := range 30 {
		taking := shardedregistry.Join(r)
		if round%3 == 0 {
			taking.Collect()
		}
		v, err := r.Create("a", round)
		if err != nil || v <= last {
			t.Fatalf("Create = %d, %v after version %d", v, err, last)
		}
		if round%3 == 1 {
			taking.Collect()
		}
		if e, ok := r.Snapshot().Lookup("a"); !ok || e.Version != v {
			t.Fatalf("the snapshot has %v, want version %d", e, v)
		}
		e, _ := r.Delete("a")
		if last = e.Version + 1; last != v+1 {
			t.Fatalf("Delete returned version %d, want %d", e.Version, v)
		}
		if round%3 == 2 {
			taking.Collect()
		}
		taking.Leave()
	}
}
