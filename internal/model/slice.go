package model

import "slices"

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

// Replace replaces the contents.
func (s *Slice) Replace(items []int) {
	s.items = slices.Clone(items)
	s.Version++
}

// CompareAndSwap replaces the contents if the version is the given one.
func (s *Slice) CompareAndSwap(version uint64, items []int) bool {
	if version != s.Version {
		return false
	}
	s.Replace(items)
	return true
}

// Set replaces the item at index i, and reports whether there was one.
func (s *Slice) Set(i, item int) bool {
	if i < 0 || i >= len(s.items) {
		return false
	}
	s.Replace(slices.Concat(s.items[:i], []int{item}, s.items[i+1:]))
	return true
}

// Delete removes the item at index i, and reports whether there was one.
func (s *Slice) Delete(i int) bool {
	if i < 0 || i >= len(s.items) {
		return false
	}
	s.Replace(slices.Concat(s.items[:i], s.items[i+1:]))
	return true
}
