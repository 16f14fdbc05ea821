//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

type entry = shardedregistry.Entry[string, int]

// restored returns a registry with entries.
func restored(t testing.TB, config shardedregistry.Config[string, int], last shardedregistry.Version, entries ...entry) *shardedregistry.Registry[string, int] {
	t.Helper()
	r, err := shardedregistry.Restore(config, last, slices.Values(entries))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func byKey(x, y entry) int { return strings.Compare(x.Key, y.Key) }

// Entries keep their versions, and all that follow are above.
func TestRestore(t *testing.T) {
	for name, config := range map[string]shardedregistry.Config[string, int]{
		"plain":      {},
		"one shard":  {Shards: 1},
		"shards":     {Shards: 512},
		"history":    {History: 1024},
		"normalised": {Normalize: normalize},
		"indexed":    {Indexes: map[string]func(string, int) []string{"all": func(string, int) []string { return []string{"x"} }}},
		"unique":     {UniqueIndexes: map[string]func(string, int) []string{"v": func(_ string, v int) []string { return []string{fmt.Sprint(v)} }}, History: 1024},
	} {
		t.Run(name, func(t *testing.T) {
			want := []entry{{"a", 1, 1}, {"b", 2, 70}, {"c", 3, 1<<60 - 1}, {"d", 4, 3}}
			r := restored(t, config, 0, want...)
			if got := slices.SortedFunc(r.Entries(), byKey); !slices.Equal(got, want) || r.Len() != len(want) || shardedregistry.Linked(r) != len(want) {
				t.Fatalf("restored are %v, Len = %d", got, r.Len())
			}
			for _, e := range want {
				if _, err := r.UpdateIf(e.Key, e.Version, e.Value+10); err != nil {
					t.Errorf("UpdateIf(%v) = %v", e, err)
				}
				if got, _ := r.Lookup(e.Key); got.Version != e.Version+1 {
					t.Errorf("%s has version %d after %d", e.Key, got.Version, e.Version)
				}
			}
			for range r.Snapshot().Entries() {
			}
			for i := range 100 {
				if v := mustPut(t, r, key(i), 100+i); v < 1<<60 {
					t.Fatalf("a new key begins at version %d", v)
				}
			}
			for _, e := range want {
				last, _ := r.Delete(e.Key)
				if v := mustPut(t, r, e.Key, e.Value); v <= last.Version+1 {
					t.Errorf("%s begins at version %d after %v", e.Key, v, last)
				}
			}
			if len(config.Indexes) > 0 {
				n := 0
				for range r.ByIndex("all", "x") {
					n++
				}
				if n != r.Len() {
					t.Errorf("the index has %d of %d keys", n, r.Len())
				}
			}
		})
	}
	r := restored(t, shardedregistry.Config[string, int]{}, 41)
	if v := mustPut(t, r, "a", 1); v != 42 || r.Snapshot().Last() != 42 {
		t.Errorf("the first version is %d, and the last %d", v, r.Snapshot().Last())
	}
	r = restored(t, shardedregistry.Config[string, int]{}, 0)
	if v := mustPut(t, r, "a", 1); v != 1 {
		t.Errorf("the first version of an empty registry is %d", v)
	}
}

// A loop from the beginning shows what was restored, with the versions that it has.
func TestRestoreIsRemembered(t *testing.T) {
	for _, c := range []config{{History: 4}, {History: 4, Shards: 1}} {
		r := restored(t, c, 0, entry{"a", 1, 1}, entry{"b", 2, 70}, entry{"c", 3, 3})
		mustPut(t, r, "c", 4)
		mustPut(t, r, "d", 5)
		for _, begin := range []shardedregistry.Revision{0, r.Revision() - 4} {
			var got []entry
			for c, err := range r.WatchFrom(t.Context(), begin) {
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, entry{c.Key, c.Value, c.Version}); c.Key == "d" {
					break
				}
			}
			if want := []entry{{"b", 2, 70}, {"c", 3, 3}, {"c", 4, 4}, {"d", 5, 71}}; !slices.Equal(got, want) {
				t.Errorf("from %d on there are %v, want %v", begin, got, want)
			}
		}
	}
}

// Whatever is wrong with one entry, there is no registry.
func TestRestoreRejects(t *testing.T) {
	config := shardedregistry.Config[string, int]{
		Normalize: normalize,
		Check: func(_ string, v int) error {
			if v < 0 {
				return errTest
			}
			return nil
		},
		UniqueIndexes: map[string]func(string, int) []string{"v": func(_ string, v int) []string { return []string{fmt.Sprint(v)} }},
	}
	good := entry{"good", 1, 1}
	for name, tt := range map[string]struct {
		bad  entry
		last shardedregistry.Version
		want error
		text string
	}{
		"no key":         {entry{" ", 2, 1}, 0, shardedregistry.ErrInvalidKey, "invalid key"},
		"twice":          {entry{"GOOD", 2, 1}, 0, shardedregistry.ErrExists, "key exists"},
		"rejected":       {entry{"x", -1, 1}, 0, errTest, ""},
		"not unique":     {entry{"x", 1, 1}, 0, shardedregistry.ErrNotUnique, ""},
		"no version":     {entry{"x", 2, 0}, 0, shardedregistry.ErrInvalidVersion, "a version must be at least 1: x"},
		"a high version": {entry{"x", 2, 1 << 60}, 0, shardedregistry.ErrInvalidVersion, "a version must be below 2^60: x"},
		"the highest":    {entry{"x", 2, math.MaxUint64}, 0, shardedregistry.ErrInvalidVersion, "a version must be below 2^60: x"},
	} {
		r, err := shardedregistry.Restore(config, tt.last, slices.Values([]entry{good, tt.bad}))
		var failed *shardedregistry.KeyError
		if r != nil || !errors.As(err, &failed) || failed.Key != tt.bad.Key || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: Restore = %v, %v", name, r, err)
		}
	}
	if r, err := shardedregistry.Restore(config, 1<<60, slices.Values([]entry{good})); r != nil || !errors.Is(err, shardedregistry.ErrInvalidVersion) || !strings.Contains(err.Error(), "below 2^60") {
		t.Errorf("Restore with a high last version = %v, %v", r, err)
	}
	config.Shards = -1
	if r, err := shardedregistry.Restore(config, 0, slices.Values([]entry{good})); r != nil || err == nil || !strings.Contains(err.Error(), "Config.Shards") {
		t.Errorf("Restore with bad settings = %v, %v", r, err)
	}
	wantPanic(t, "Restore called with a nil iterator", func() { shardedregistry.Restore[string, int](shardedregistry.Config[string, int]{}, 0, nil) })
	for how, exit := range leave {
		p := left(t, func() {
			shardedregistry.Restore(shardedregistry.Config[string, int]{}, 0, func(yield func(entry) bool) { yield(good); exit() })
		})
		if how == "panic" && p != "the caller's panic" {
			t.Errorf("the panic became %v", p)
		}
	}
}

// A registry that is restored from a snapshot gives no key a version that the key had before
// the snapshot.
func TestSnapshotLast(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	if v := r.Snapshot().Last(); v != 0 {
		t.Errorf("Last of an unused registry = %d", v)
	}
	highest := map[string]shardedregistry.Version{}
	note := func(k string, v shardedregistry.Version) { highest[k] = max(highest[k], v) }
	for i := range 500 {
		k := key(i % 37)
		note(k, mustPut(t, &r, k, i))
		if i%5 == 0 {
			e, _ := r.Delete(k)
			note(k, e.Version+1)
		}
	}
	rest := shardedregistry.Kill(&r, key(1)) // its dead cell is in the table
	s := r.Snapshot()
	rest()
	again, err := shardedregistry.Restore(shardedregistry.Config[string, int]{}, s.Last(), s.Entries())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.SortedFunc(again.Entries(), byKey), slices.SortedFunc(s.Entries(), byKey); !slices.Equal(got, want) {
		t.Errorf("restored are %v, want %v", got, want)
	}
	for k, v := range highest {
		if e, ok := again.Lookup(k); ok {
			again.Delete(k)
			v = max(v, e.Version)
		}
		if now := mustPut(t, again, k, 1); now <= v {
			t.Errorf("%s begins at version %d, and had %d", k, now, v)
		}
	}
}

// Last, beside creations and deletions, is never below what had returned.
func TestStressSnapshotLast(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	n := iterations(2000)
	hammer(t, 4, func(worker int) {
		for i := range n {
			k := i*7%5 + worker/2*10
			v, err := r.Put(k, i)
			if err != nil {
				t.Error(err)
			}
			if i%3 == 0 {
				if e, ok := r.Delete(k); ok {
					v = max(v, e.Version+1)
				}
			}
			if last := r.Snapshot().Last(); last < v {
				t.Errorf("Last = %d, after version %d", last, v)
			}
			if i%50 == 0 {
				runtime.Gosched()
			}
		}
	})
}

// The highest version may be that before which others begin.
func TestRestoreAboveTheHighest(t *testing.T) {
	if n := shardedregistry.MaxRestored; n != 1_152_921_504_606_846_975 { // others have saved entries below it
		t.Errorf("the highest version has changed to %d", n)
	}
	r, err := shardedregistry.Restore(config{}, shardedregistry.MaxRestored, func(func(entry) bool) {})
	if err != nil {
		t.Fatal(err)
	}
	if version := mustPut(t, r, "a", 1); version != shardedregistry.MaxRestored+1 {
		t.Errorf("a key begins at %d", version)
	}
}
