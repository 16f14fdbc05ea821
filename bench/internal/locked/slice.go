package locked

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Slice is the interface of the slices below: cowchangeset.Slice without its
// conditional writes.
type Slice[T any] interface {
	Load() []T
	Append(items ...T) int
	Update(fn func(old []T) []T)
}

// MutexSlice shares the array with its readers: items are only ever appended,
// or replaced with their array, so that Load is a slice header.
type MutexSlice[T any] struct {
	mu    sync.Mutex
	items []T
}

// Load returns the current contents, read-only.
func (s *MutexSlice[T]) Load() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.items)
}

// Append adds items at the end.
func (s *MutexSlice[T]) Append(items ...T) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.items)
	s.items = append(s.items, items...)
	return n
}

// Update replaces the contents.
func (s *MutexSlice[T]) Update(fn func(old []T) []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = slices.Clip(fn(slices.Clip(s.items)))
}

// RWMutexSlice is MutexSlice with readers that do not exclude each other.
type RWMutexSlice[T any] struct {
	mu    sync.RWMutex
	items []T
}

// Load returns the current contents, read-only.
func (s *RWMutexSlice[T]) Load() []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clip(s.items)
}

// Append adds items at the end.
func (s *RWMutexSlice[T]) Append(items ...T) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.items)
	s.items = append(s.items, items...)
	return n
}

// Update replaces the contents.
func (s *RWMutexSlice[T]) Update(fn func(old []T) []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = slices.Clip(fn(slices.Clip(s.items)))
}

// CopySlice is the copy-on-write idiom of package sync/atomic's documentation:
// readers load a pointer, and writers copy everything under a mutex.
type CopySlice[T any] struct {
	mu    sync.Mutex // serialises writers
	items atomic.Pointer[[]T]
}

// Load returns the current contents, read-only.
func (s *CopySlice[T]) Load() []T {
	if p := s.items.Load(); p != nil {
		return *p
	}
	return nil
}

// Append adds items at the end.
func (s *CopySlice[T]) Append(items ...T) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.Load()
	all := slices.Concat(old, items)
	s.items.Store(&all)
	return len(old)
}

// Update replaces the contents.
func (s *CopySlice[T]) Update(fn func(old []T) []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clip(fn(s.Load()))
	s.items.Store(&all)
}
