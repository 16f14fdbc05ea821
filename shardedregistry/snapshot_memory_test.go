//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// blob is a value that is a heap object of its own.
type blob struct{ bytes [64 << 10]byte }

// What a snapshot contains lives as long as the snapshot and no longer, and it
// keeps neither the registry nor what its records replaced.
func TestSnapshotMemory(t *testing.T) {
	r := new(shardedregistry.Registry[string, *blob])
	first, second := new(blob), new(blob)
	before, at, registry := weak.Make(first), weak.Make(second), weak.Make(r)
	mustPut(t, r, "a", first)
	taker := shardedregistry.Join(r) // needs the first for a while
	mustPut(t, r, "a", second)
	first, second = nil, nil
	s := r.Snapshot()
	mustPut(t, r, "a", new(blob))
	taker.Leave()
	runtime.GC()
	if before.Value() != nil {
		t.Error("what was replaced before the cut is kept")
	}
	runtime.KeepAlive(r)
	r, taker = nil, shardedregistry.Taker[string, *blob]{}
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

// An update that starts over when a snapshot has been taken keeps nothing of
// its attempt during it.
func TestUpdateOutlivesSnapshot(t *testing.T) {
	var r shardedregistry.Registry[string, *blob]
	first := new(blob)
	before := weak.Make(first)
	mustPut(t, &r, "a", first)
	first = nil
	taker := shardedregistry.Join(&r)
	runs := 0
	_, err := r.Update("a", func(*blob) (*blob, error) {
		if runs++; runs == 1 {
			mustPut(t, &r, "a", new(blob)) // makes this attempt fail
			taker.Leave()
		}
		return new(blob), nil
	})
	if err != nil || runs != 2 {
		t.Fatalf("Update = %v after %d runs, want 2", err, runs)
	}
	taker = shardedregistry.Taker[string, *blob]{}
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
