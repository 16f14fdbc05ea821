//go:build !modelcheck

package shardedregistry_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// keysOf returns the keys of s, and fails the test unless all ways to read it agree.
func keysOf[K comparable, V comparable](t testing.TB, s shardedregistry.SortedEntries[K, V]) (keys []K) {
	t.Helper()
	entries := slices.Collect(s.Entries())
	for i, e := range entries {
		if s.At(i) != e {
			t.Fatalf("At(%d) = %v, and a loop yields %v", i, s.At(i), e)
		}
		keys = append(keys, e.Key)
	}
	i := 0
	for k, v := range s.All() {
		if e := entries[i]; e.Key != k || e.Value != v {
			t.Fatalf("All yields %v, %v, and Entries %v", k, v, e)
		}
		i++
	}
	back := slices.Collect(s.Backward())
	slices.Reverse(back)
	if !slices.Equal(entries, back) || i != s.Len() || len(entries) != s.Len() {
		t.Fatalf("Entries yields %v, Backward %v, All %d and Len = %d", entries, back, i, s.Len())
	}
	for k := range s.All() { // leaves early
		if k != keys[0] {
			t.Fatal("another loop has another order")
		}
		break
	}
	for range s.Entries() {
		break
	}
	for range s.Backward() {
		break
	}
	return keys
}

func TestSorted(t *testing.T) {
	names := []string{"", "a", "a/", "a/b", "a/\xff", "a0", "aa", "b", "\xff", "\xff\xff", "\xff\xff\x01", "ä", "z"}
	for _, n := range []int{0, 1, 2, len(names)} {
		var r shardedregistry.Registry[string, int]
		rand.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names[:n] {
			mustPut(t, &r, name, i)
		}
		s := shardedregistry.Sorted(r.Snapshot())
		mustPut(t, &r, "later", 1)
		all := slices.Sorted(slices.Values(names[:n]))
		if got := keysOf(t, s.SortedEntries); !slices.Equal(got, all) {
			t.Fatalf("sorted are %q, want %q", got, all)
		}
		want := func(what string, got shardedregistry.SortedKeys[string, int], in func(k string) bool) {
			t.Helper()
			keys := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return !in(k) })
			if got := keysOf(t, got.SortedEntries); !slices.Equal(got, keys) {
				t.Errorf("%s has %q, want %q", what, got, keys)
			}
		}
		for _, from := range append(names, "a/a", "a.", "\xff\xff\xff") {
			want(fmt.Sprintf("From(%q)", from), s.From(from), func(k string) bool { return k >= from })
			want(fmt.Sprintf("Before(%q)", from), s.Before(from), func(k string) bool { return k < from })
			want(fmt.Sprintf("Prefix(%q)", from), shardedregistry.SortedPrefix(s, from), func(k string) bool { return strings.HasPrefix(k, from) })
			for _, to := range append(names, "a/a", "zz") {
				want(fmt.Sprintf("Range(%q, %q)", from, to), s.Range(from, to), func(k string) bool { return k >= from && k < to })
			}
			i := s.Search(func(e shardedregistry.Entry[string, int]) bool { return e.Key > from })
			want(fmt.Sprintf("Slice after %q", from), s.Slice(i, s.Len()), func(k string) bool { return k > from })
		}
	}
	var none shardedregistry.SortedKeys[string, int]
	if none.Len() != 0 || none.Range("", "z").Len() != 0 || shardedregistry.SortedPrefix(none, "a").Len() != 0 ||
		shardedregistry.Sorted(new(shardedregistry.Snapshot[string, int])).Len() != 0 {
		t.Error("the zero SortedKeys has an entry")
	}
}

// Numbers are ordered as cmp.Compare orders them.
func TestSortedNumbers(t *testing.T) {
	var r shardedregistry.Registry[float64, int]
	for i, k := range []float64{3, math.Inf(1), -2, 0, math.Inf(-1), 0.5} {
		mustPut(t, &r, k, i)
	}
	s := shardedregistry.Sorted(r.Snapshot())
	want := []float64{math.Inf(-1), -2, 0, 0.5, 3, math.Inf(1)}
	if got := keysOf(t, s.SortedEntries); !slices.Equal(got, want) {
		t.Errorf("sorted are %v", got)
	}
	if got := keysOf(t, s.Range(math.Copysign(0, -1), 3).SortedEntries); !slices.Equal(got, []float64{0, 0.5}) {
		t.Errorf("from 0 to 3 are %v", got)
	}
	if n := s.From(math.NaN()).Len(); n != len(want) {
		t.Errorf("%d keys are at least NaN, which is less than all", n)
	}
}

// A part of a SortedKeys is bounded by what it is, and cannot be extended.
func TestSortedSlice(t *testing.T) {
	var r shardedregistry.Registry[int, int]
	for i := range 10 {
		mustPut(t, &r, i, i)
	}
	part := shardedregistry.Sorted(r.Snapshot()).Slice(2, 5)
	if got := keysOf(t, part.SortedEntries); !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("the part has %v", got)
	}
	if got := keysOf(t, part.Range(0, 100).SortedEntries); !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("a range of the part has %v", got)
	}
	for name, f := range map[string]func(){
		"At(-1)":      func() { part.At(-1) },
		"At(3)":       func() { part.At(3) },
		"Slice(1, 4)": func() { part.Slice(1, 4) },
		"Slice(2, 1)": func() { part.Slice(2, 1) },
		"Slice(-1,0)": func() { part.Slice(-1, 0) },
	} {
		if p := left(t, f); !strings.Contains(fmt.Sprint(p), "out of range") {
			t.Errorf("%s panics with %v", name, p)
		}
	}
}

func TestSortedFunc(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	for i := range 500 {
		mustPut(t, &r, key(i), i*7919%100)
	}
	mustPut(t, &r, key(3), 50) // version 2
	s := r.Snapshot()
	byValue := shardedregistry.SortedFunc(s, func(a, b shardedregistry.Entry[string, int]) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Key, b.Key))
	})
	keys := keysOf(t, byValue)
	want := slices.SortedFunc(s.Entries(), func(a, b shardedregistry.Entry[string, int]) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Key, b.Key))
	})
	for i, e := range want {
		if byValue.At(i) != e {
			t.Fatalf("entry %d is %v, want %v", i, byValue.At(i), e)
		}
	}
	below := byValue.Search(func(e shardedregistry.Entry[string, int]) bool { return e.Value < 90 })
	for i := range keys {
		if e := byValue.At(i); (e.Value >= 90) != (i < below) {
			t.Errorf("entry %d is %v, and %d entries are at least 90", i, e, below)
		}
	}
	byVersion := shardedregistry.SortedFunc(s, func(a, b shardedregistry.Entry[string, int]) int { return cmp.Compare(b.Version, a.Version) })
	if e := byVersion.At(0); e.Key != key(3) || e.Version != 2 {
		t.Errorf("the last version is %v", e)
	}
	wantPanic(t, "SortedFunc called with a nil function", func() { shardedregistry.SortedFunc(s, nil) })
}

// Functions that lie give any order of all entries; such that leave leave the
// snapshot as it was.
func TestSortedFuncThatLies(t *testing.T) {
	var r shardedregistry.Registry[int, int]
	for i := range 3000 {
		mustPut(t, &r, i, i)
	}
	s := r.Snapshot()
	calls := 0
	for name, compare := range map[string]func(a, b shardedregistry.Entry[int, int]) int{
		"random":        func(a, b shardedregistry.Entry[int, int]) int { return rand.IntN(3) - 1 },
		"always before": func(a, b shardedregistry.Entry[int, int]) int { return -1 },
		"always after":  func(a, b shardedregistry.Entry[int, int]) int { return 1 },
		"all equal":     func(a, b shardedregistry.Entry[int, int]) int { return 0 },
		"extreme": func(a, b shardedregistry.Entry[int, int]) int {
			return []int{math.MinInt, math.MaxInt}[(a.Key+b.Key)%2]
		},
		"cyclic":            func(a, b shardedregistry.Entry[int, int]) int { return (b.Key-a.Key+3)%3 - 1 },
		"changes its mind":  func(a, b shardedregistry.Entry[int, int]) int { calls++; return (a.Key - b.Key) * (1 - calls/5000%2*2) },
		"uses the registry": func(a, b shardedregistry.Entry[int, int]) int { r.Delete(a.Key); return cmp.Compare(a.Key, b.Key) },
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func() {
				keys := keysOf(t, shardedregistry.SortedFunc(s, compare))
				slices.Sort(keys)
				for i, k := range keys {
					if i != k {
						t.Fatalf("key %d is %d", i, k)
					}
				}
				if len(keys) != 3000 {
					t.Errorf("%d keys", len(keys))
				}
			})
		})
	}
	for how, exit := range leave {
		n := 0
		p := left(t, func() {
			shardedregistry.SortedFunc(s, func(a, b shardedregistry.Entry[int, int]) int {
				if n++; n == 5000 {
					exit()
				}
				return cmp.Compare(a.Key, b.Key)
			})
		})
		if how == "panic" && p != "the caller's panic" {
			t.Errorf("the panic became %v", p)
		}
		if keys := keysOf(t, shardedregistry.Sorted(s).SortedEntries); len(keys) != 3000 || s.Len() != 3000 {
			t.Errorf("after a %s the snapshot has %d keys", how, len(keys))
		}
	}
}

// With Clone, what is handed out, also to compare, is a copy.
func TestSortedClones(t *testing.T) {
	clones := 0
	r := shardedregistry.MustNew(shardedregistry.Config[string, list]{Clone: func(l list) list { clones++; return cloneList(l) }})
	for i := range 10 {
		mustPut(t, r, key(i), of(i, 0))
	}
	s := r.Snapshot()
	clones = 0
	spoil := func(l list) int { (*l)[1] = -1; return (*l)[0] }
	sorted := shardedregistry.SortedFunc(s, func(a, b shardedregistry.Entry[string, list]) int {
		return cmp.Compare(spoil(b.Value), spoil(a.Value))
	})
	if clones != 10 {
		t.Errorf("sorting 10 entries cloned %d values", clones)
	}
	for _, spoil := range []func(){
		func() { (*sorted.At(0).Value)[0] = -1 },
		func() {
			for _, l := range sorted.All() {
				(*l)[0] = -1
			}
		},
		func() {
			for e := range sorted.Backward() {
				(*e.Value)[0] = -1
			}
		},
		func() {
			sorted.Search(func(e shardedregistry.Entry[string, list]) bool { (*e.Value)[0] = -1; return true })
		},
	} {
		spoil()
		i := 9
		for e := range sorted.Entries() {
			if got := describe(e.Value); got != fmt.Sprintf("[%d,0]", i) {
				t.Fatalf("entry %s is %s, want %d", e.Key, got, i)
			}
			i--
		}
	}
}
