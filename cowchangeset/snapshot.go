package cowchangeset

import (
	"iter"
	"slices"
)

// Snapshot is the contents of a Slice at one moment. It never changes, may be
// copied, and may be used from many goroutines. The zero Snapshot is that of a
// Slice that was never changed.
type Snapshot[T any] struct {
	of      *Slice[T]
	items   []T
	version uint64
}

// Len returns the number of items.
func (s Snapshot[T]) Len() int { return len(s.items) }

// At returns the item at index i. It panics if i is out of range.
func (s Snapshot[T]) At(i int) T { return s.items[i] }

// All yields indices and items.
func (s Snapshot[T]) All() iter.Seq2[int, T] { return slices.All(s.items) }

// Version tells snapshots of one Slice apart: it starts at 0, and each change
// makes it larger, an Append by the number of items and any other by 1.
func (s Snapshot[T]) Version() uint64 { return s.version }
