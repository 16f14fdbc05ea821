package shardedregistry

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"
)

// SortedEntries is entries of a [Snapshot] in an order. It never changes, and any
// number of goroutines may use it. It keeps the values of all entries that were
// sorted, also where it has a part of them, and nothing else of the snapshot. The
// zero SortedEntries is empty.
type SortedEntries[K comparable, V any] struct {
	items []sortedItem[K]
	clone func(V) V // or nil
}

// sortedItem is a key with its record, which is live and plain.
type sortedItem[K comparable] struct {
	key K
	rec *record
}

// SortedKeys is [SortedEntries] in the order of their keys. The zero SortedKeys is
// empty.
type SortedKeys[K cmp.Ordered, V any] struct {
	SortedEntries[K, V]
}

// Sorted returns what s contains in the order of the keys, by [cmp.Compare].
//
// Each call sorts anew, in time and memory in proportion to n log n and n. So a
// caller that needs the order more than once keeps the result.
func Sorted[K cmp.Ordered, V any](s *Snapshot[K, V]) SortedKeys[K, V] {
	items := make([]sortedItem[K], len(s.records))
	for i, rec := range s.records {
		items[i] = sortedItem[K]{s.keys[i], rec}
	}
	slices.SortFunc(items, func(a, b sortedItem[K]) int { return cmp.Compare(a.key, b.key) })
	return SortedKeys[K, V]{SortedEntries[K, V]{items, s.clone}}
}

// SortedFunc returns what s contains in the order of compare, which returns a
// negative number if a comes before b, a positive one if b comes before a, and 0 if
// their order does not matter; see [slices.SortFunc]. Entries whose order does not
// matter come in any order. So compare may order by key, value or version.
//
// SortedFunc calls compare on the caller's goroutine, and nothing does later. With
// Config.Clone, compare is given copies, one for each entry. If compare is
// inconsistent, the order is any, and each entry is there once. If it panics or
// calls runtime.Goexit, s is as before. Each call sorts anew.
//
// SortedFunc panics if compare is nil.
func SortedFunc[K comparable, V any](s *Snapshot[K, V], compare func(a, b Entry[K, V]) int) SortedEntries[K, V] {
	if compare == nil {
		panic("shardedregistry: SortedFunc called with a nil function")
	}
	entries := slices.AppendSeq(make([]Entry[K, V], 0, s.Len()), s.Entries())
	order := make([]int, s.Len()) // sorted instead of the entries, which may be large
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return compare(entries[i], entries[j]) })
	items := make([]sortedItem[K], len(order))
	for to, from := range order {
		items[to] = sortedItem[K]{s.keys[from], s.records[from]}
	}
	return SortedEntries[K, V]{items, s.clone}
}

// Len returns the number of entries.
func (s SortedEntries[K, V]) Len() int { return len(s.items) }

// At returns the entry number i, from 0 on. Like an index of a slice, an i that is
// negative or not below Len panics.
func (s SortedEntries[K, V]) At(i int) Entry[K, V] {
	rec := s.items[i].rec
	return Entry[K, V]{s.items[i].key, copied(s.clone, *valueOf[V](rec)), rec.version()}
}

// All returns an iterator over the keys and values, in order.
func (s SortedEntries[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range s.items {
			if !yield(s.items[i].key, copied(s.clone, *valueOf[V](s.items[i].rec))) {
				return
			}
		}
	}
}

// Entries is All with versions.
func (s SortedEntries[K, V]) Entries() iter.Seq[Entry[K, V]] {
	return func(yield func(Entry[K, V]) bool) {
		for i := range s.items {
			if !yield(s.At(i)) {
				return
			}
		}
	}
}

// Backward is Entries from the last entry to the first.
func (s SortedEntries[K, V]) Backward() iter.Seq[Entry[K, V]] {
	return func(yield func(Entry[K, V]) bool) {
		for i := len(s.items) - 1; i >= 0; i-- {
			if !yield(s.At(i)) {
				return
			}
		}
	}
}

// Slice returns the entries from number i on and before number j. It panics where a
// slice with Len elements does.
func (s SortedEntries[K, V]) Slice(i, j int) SortedEntries[K, V] {
	return SortedEntries[K, V]{s.items[i:j:len(s.items)], s.clone}
}

// Search returns the number of the first entry for which f returns true, or Len if
// there is none. As for [sort.Search], f must return false for some first entries
// and true for all others; it is called about log2(Len) times.
func (s SortedEntries[K, V]) Search(f func(Entry[K, V]) bool) int {
	return sort.Search(len(s.items), func(i int) bool { return f(s.At(i)) })
}

// Slice returns the entries from number i on and before number j. It panics where a
// slice with Len elements does.
func (s SortedKeys[K, V]) Slice(i, j int) SortedKeys[K, V] {
	return SortedKeys[K, V]{s.SortedEntries.Slice(i, j)}
}

// From returns the entries whose keys are at least k. Like the other bounds, k is
// compared with keys as they are stored, and is not normalised.
func (s SortedKeys[K, V]) From(k K) SortedKeys[K, V] { return s.Slice(s.above(k), s.Len()) }

// Before returns the entries whose keys are less than k.
func (s SortedKeys[K, V]) Before(k K) SortedKeys[K, V] { return s.Slice(0, s.above(k)) }

// Range returns the entries whose keys are at least from and less than to: none, if
// to is not greater than from.
func (s SortedKeys[K, V]) Range(from, to K) SortedKeys[K, V] { return s.From(from).Before(to) }

// above returns the number of the first key that is at least k, or Len.
func (s SortedKeys[K, V]) above(k K) int {
	return sort.Search(len(s.items), func(i int) bool { return cmp.Compare(s.items[i].key, k) >= 0 })
}

// SortedPrefix returns the entries of s whose keys begin with prefix.
func SortedPrefix[K ~string, V any](s SortedKeys[K, V], prefix K) SortedKeys[K, V] {
	s = s.From(prefix)
	return s.Slice(0, sort.Search(len(s.items), func(i int) bool {
		return !strings.HasPrefix(string(s.items[i].key), string(prefix))
	}))
}
