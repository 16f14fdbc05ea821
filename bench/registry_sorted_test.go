package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/shardedregistry"
)

// BenchmarkRegistrySorted orders a snapshot, which is not measured.
func BenchmarkRegistrySorted(b *testing.B) {
	type entry = shardedregistry.Entry[string, int]
	byValue := func(x, y entry) int { return cmp.Compare(x.Value, y.Value) }
	for _, keys := range []int{100, 10_000, 100_000} {
		var r shardedregistry.Registry[string, int]
		for i, name := range load.Names(keys) {
			if _, err := r.Put(name, i*7919%keys); err != nil {
				b.Fatal(err)
			}
		}
		s := r.Snapshot()
		for _, way := range []struct {
			name string
			len  func() int
		}{
			{"order=key/impl=Sorted", func() int { return shardedregistry.Sorted(s).Len() }},
			{"order=key/impl=slices.SortedFunc", func() int {
				return len(slices.SortedFunc(s.Entries(), func(x, y entry) int { return strings.Compare(x.Key, y.Key) }))
			}},
			{"order=value/impl=SortedFunc", func() int { return shardedregistry.SortedFunc(s, byValue).Len() }},
			{"order=value/impl=slices.SortedFunc", func() int { return len(slices.SortedFunc(s.Entries(), byValue)) }},
		} {
			b.Run(fmt.Sprintf("keys=%d/%s", keys, way.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if n := way.len(); n != keys {
						b.Fatalf("%d entries, want %d", n, keys)
					}
				}
			})
		}
	}
}

// BenchmarkRegistrySortedRange looks for ten keys in a sorted snapshot.
func BenchmarkRegistrySortedRange(b *testing.B) {
	for _, keys := range []int{100, 10_000, 100_000} {
		var r shardedregistry.Registry[string, int]
		names := load.Names(keys)
		for i, name := range names {
			if _, err := r.Put(name, i); err != nil {
				b.Fatal(err)
			}
		}
		sorted := shardedregistry.Sorted(r.Snapshot())
		b.Run(fmt.Sprintf("keys=%d/impl=SortedKeys", keys), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				n := 0
				for range sorted.From(names[i%keys]).All() {
					if n++; n == 10 {
						break
					}
				}
				i++
			}
		})
	}
}
