package peers

import (
	"crypto/rand"
	"sync/atomic"

	"github.com/latchfree/latchfree/cowchangeset"
)

// cowSlice is copy-on-write as it is usually written without a lock: one
// pointer to an immutable slice, which an append copies whole and swaps in.
// It needs no library. n appends one by one copy n²/2 items.
type cowSlice[T any] struct{ items atomic.Pointer[[]T] }

// Load returns the current contents, read-only.
func (s *cowSlice[T]) Load() []T {
	if p := s.items.Load(); p != nil {
		return *p
	}
	return nil
}

// Append adds items at the end.
func (s *cowSlice[T]) Append(items ...T) int {
	for {
		old := s.items.Load()
		var have []T
		if old != nil {
			have = *old
		}
		all := make([]T, len(have)+len(items))
		copy(all[copy(all, have):], items)
		if s.items.CompareAndSwap(old, &all) {
			return len(have)
		}
		// Another append succeeded.
	}
}

// cowTracker is the same idea for changesets: the latest one is an immutable
// value, so that a record finds out where it belongs and gets there by one
// swap. Earlier changesets stay reachable, as they do with the others.
type cowTracker[E any] struct{ latest atomic.Pointer[cowSet[E]] }

type cowSet[E any] struct {
	id       string
	ordinal  uint64
	previous *cowSet[E]
	entries  []E
}

func (t *cowTracker[E]) start() {
	id := rand.Text()
	for {
		old := t.latest.Load()
		next := &cowSet[E]{id: id, ordinal: 1, previous: old}
		if old != nil {
			next.ordinal = old.ordinal + 1
		}
		if t.latest.CompareAndSwap(old, next) {
			return
		}
		// Another start or record succeeded.
	}
}

// Record adds e to the latest changeset.
func (t *cowTracker[E]) Record(e E) (cowchangeset.Receipt, error) {
	for {
		old := t.latest.Load()
		if old == nil {
			return cowchangeset.Receipt{}, cowchangeset.ErrNoActive
		}
		next := *old
		next.entries = make([]E, len(old.entries)+1)
		next.entries[copy(next.entries, old.entries)] = e
		if t.latest.CompareAndSwap(old, &next) {
			return cowchangeset.Receipt{ChangesetID: old.id, Ordinal: old.ordinal, Seq: uint64(len(old.entries))}, nil
		}
		// Another start or record succeeded.
	}
}
