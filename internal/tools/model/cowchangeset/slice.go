package model

import (
	"fmt"
	"slices"
)

// Slice is cowchangeset.Slice for one goroutine. It copies whatever it takes
// or gives.
type Slice struct {
	items   []int
	Version uint64
}

// Load returns the contents.
func (s *Slice) Load() []int { return slices.Clone(s.items) }

// Append adds items and returns the index of the first.
func (s *Slice) Append(items ...int) int {
	n := len(s.items)
	s.items = append(s.items, items...)
	s.Version += uint64(len(items))
	return n
}

// Update replaces the contents by what f makes of them.
func (s *Slice) Update(f func([]int) []int) {
	s.items = slices.Clone(f(s.Load()))
	s.Version++
}

// CompareAndSwap replaces the contents if the version is the given one.
func (s *Slice) CompareAndSwap(version uint64, items []int) bool {
	if version != s.Version {
		return false
	}
	s.Update(func([]int) []int { return items })
	return true
}

// Set replaces the item at index i.
func (s *Slice) Set(i, item int) { s.edit("Set", i, item) }

// Delete removes the item at index i.
func (s *Slice) Delete(i int) { s.edit("Delete", i) }

// edit replaces the item at index i by others.
func (s *Slice) edit(op string, i int, by ...int) {
	if i < 0 || i >= len(s.items) {
		panic(fmt.Sprintf("cowchangeset: Slice.%s called with index %d of %d items", op, i, len(s.items)))
	}
	s.Update(func(items []int) []int { return slices.Replace(items, i, i+1, by...) })
}
