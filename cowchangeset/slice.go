package cowchangeset

import (
	"fmt"
	"iter"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Slice is a copy-on-write slice: readers get real slices that never change, and must not
// write to them. The zero value is an empty slice, ready to use. A Slice must not be
// copied after first use.
type Slice[T any] struct {
	_ atomics.NoCopy

	// arr is nil while nothing was ever written. It is replaced by CAS, and
	// only after the array that it pointed to was frozen.
	arr atomics.Pointer[array[T]]
}

// array holds items[:length], which never change, and room for more. All but the word
// and the items past the length is immutable once arr shows it.
type array[T any] struct {
	word    atomics.Uint64 // a word: appends claim and publish, replacements freeze, by CAS
	version uint64         // of the empty prefix: the slice's is version + length
	items   []T            // length == capacity; items past the length belong to the claim
}

func (a *array[T]) load() word { return word(a.word.Load()) }

func (a *array[T]) cas(old, new word) bool { return a.word.CompareAndSwap(uint64(old), uint64(new)) }

// claim makes the caller owner of the items past w's length.
func (a *array[T]) claim(w word) bool { return a.cas(w, w|claimed) }

// publish appends the first k items of the claim that was made on w. It fails
// if the array was frozen meanwhile.
func (a *array[T]) publish(w word, k uint64) bool {
	return a.cas(w|claimed, lengthWord(w.length()+k))
}

// freeze makes w's length final and voids its claim. It fails if the word is
// no longer w.
func (a *array[T]) freeze(w word) bool { return w&frozen != 0 || a.cas(w, w|frozen) }

// Load returns the current contents, with length equal to capacity, so that appending to
// them copies. It costs two atomic loads and no copy.
//
// Load is wait-free. It takes effect when the length is read or, if the array was replaced
// before that, at the replacement.
func (s *Slice[T]) Load() []T {
	a := s.arr.Load()
	if a == nil {
		return nil
	}
	n := a.load().length() // LP(Load): or the earlier replacement of a
	return a.items[:n:n]
}

// Len returns the number of items.
//
// Len is wait-free. It takes effect as Load does.
func (s *Slice[T]) Len() int { return len(s.Load()) }

// Snapshot returns the current contents with their version, for CompareAndSwap. It
// costs the same as Load.
//
// Snapshot is wait-free. It takes effect as Load does.
func (s *Slice[T]) Snapshot() Snapshot[T] {
	a := s.arr.Load()
	if a == nil {
		return Snapshot[T]{of: s}
	}
	n := a.load().length() // LP(Snapshot)
	return Snapshot[T]{of: s, items: a.items[:n:n], version: a.version + n}
}

// All yields indices and items as they were when the loop began.
//
// All is wait-free. It takes effect, as Load does, when a loop over it begins.
func (s *Slice[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		slices.All(s.Load())(yield)
	}
}

// Append adds copies of items at the end, next to each other, and returns the index of the first
// one, or the length if there are none. It copies the array only when that is full, or to get past
// an appender that has stalled halfway.
//
// Append is lock-free. It takes effect when the new length is published.
func (s *Slice[T]) Append(items ...T) int {
	k := uint64(len(items))
	if k == 0 {
		return s.Len()
	}
	var others spinWait
	failed := 0
	for {
		a := s.arr.Load()
		if a == nil {
			if s.arr.CompareAndSwap(nil, grown(a, 0, items)) { // LP(Append): the first
				return 0
			}
			continue // another write was the first
		}
		w := a.load()
		n := w.length()
		idle := w&(claimed|frozen) == 0
		if idle && k <= uint64(len(a.items))-n {
			if !a.claim(w) { // the word moved: by an append, or by a claim or freeze dealt with below
				failed++
				atomics.Backoff(failed)
				continue
			}
			copy(a.items[n:], items)
			if a.publish(w, k) { // LP(Append): in place
				return int(n)
			}
			clear(a.items[n : n+k]) // still ours, and past the final length
			continue                // whoever froze the array, or somebody faster, replaces it
		}
		if !idle && others.spin() {
			continue // the owner is about to publish or to replace
		}
		if a.freeze(w) && s.arr.CompareAndSwap(a, grown(a, n, items)) { // LP(Append): in a new array
			return int(n)
		}
		// The word moved, or another write replaced the array.
	}
}

// grown returns a's first n items followed by more, in an array with room for
// as many again, so that n appends copy O(n) items in total. A is nil, or
// frozen at n.
func grown[T any](a *array[T], n uint64, more []T) *array[T] {
	const least = 4 // of a first array, whose doublings would all be tiny
	b := &array[T]{}
	if a != nil {
		b.items, b.version = a.items[:n:n], a.version
	}
	b.items = append(slices.Grow(b.items, max(int(n)+len(more), least)), more...)
	b.word.Store(uint64(lengthWord(uint64(len(b.items)))))
	b.items = b.items[:cap(b.items)]
	return b
}

// Update replaces the contents by the result of fn, which then belongs to the Slice. Fn runs again
// whenever another change came first: it should be pure. It must not write to its argument; it may
// return it, a part of it, or append to it. If fn panics or calls runtime.Goexit, nothing changes.
// Update panics if fn is nil.
//
// Update is lock-free. It takes effect when the array is replaced.
func (s *Slice[T]) Update(fn func(old []T) []T) {
	if fn == nil {
		panic("cowchangeset: Slice.Update called with a nil function")
	}
	for failed := 1; ; failed++ {
		old := s.Snapshot()
		if s.swap(old.version, fn(old.items)) { // LP(Update)
			return
		}
		atomics.Backoff(failed) // another change took effect since the snapshot
	}
}

// CompareAndSwap replaces the contents by items if nothing has changed since the snapshot old was
// taken, and reports whether it did. Then items belongs to the Slice. The zero Snapshot matches a
// Slice that was never changed.
//
// CompareAndSwap is lock-free. It takes effect when the array is replaced, or when the
// version is read and differs.
func (s *Slice[T]) CompareAndSwap(old Snapshot[T], items []T) bool {
	if old.of != nil && old.of != s {
		return false
	}
	return s.swap(old.version, items)
}

// swap replaces the contents by items if the version is still the given one.
func (s *Slice[T]) swap(version uint64, items []T) bool {
	b := adopted(version+1, items)
	for {
		a := s.arr.Load()
		if a == nil {
			if version != 0 {
				return false
			}
			if s.arr.CompareAndSwap(nil, b) { // LP(CompareAndSwap): true, the first
				return true
			}
			continue // another write was the first
		}
		w := a.load()
		if a.version+w.length() != version {
			return false // LP(CompareAndSwap): false, at the load of w or the earlier replacement of a
		}
		if a.freeze(w) && s.arr.CompareAndSwap(a, b) { // LP(CompareAndSwap): true
			return true
		}
		// The word moved: an append, or a claim that the next attempt voids.
		// Or the array was replaced, and with it the version.
	}
}

// adopted returns an array of the given items and version. It does not use their spare
// capacity: they may be part of an earlier array, whose remaining items others can
// still see.
func adopted[T any](version uint64, items []T) *array[T] {
	n := uint64(len(items))
	a := &array[T]{version: version - n, items: items[:n:n]}
	a.word.Store(uint64(lengthWord(n)))
	return a
}

// Snapshot is the contents of a Slice at one moment. It never changes, may be copied,
// and may be used from many goroutines. The zero Snapshot is that of a Slice that was
// never changed.
type Snapshot[T any] struct {
	of      *Slice[T]
	items   []T
	version uint64
}

// Items returns the contents, as Load did when the snapshot was taken.
func (s Snapshot[T]) Items() []T { return s.items }

// Version tells snapshots of one Slice apart: it starts at 0, and each change
// makes it larger, an Append by the number of items and any other by 1.
func (s Snapshot[T]) Version() uint64 { return s.version }

// word is the one mutable word of a Slice's array:
//
//	 63                                   2        1         0
//	+--------------------------------------+--------+---------+
//	|                length                | frozen | claimed |
//	+--------------------------------------+--------+---------+
//
// Length is the number of published items. Claimed: one Append owns the items
// from length on. Frozen: the length is final, and the claim, if any, is void.
type word uint64

const (
	claimed word = 1 << iota
	frozen
	lengthShift = iota
)

// lengthWord panics if a word has no room for n: only items without a size can
// be so many. Nobody has claimed anything when it does.
func lengthWord(n uint64) word {
	if n>>(64-lengthShift) != 0 {
		panic("cowchangeset: a Slice cannot have 2^62 items")
	}
	return word(n << lengthShift)
}

func (w word) length() uint64 { return uint64(w >> lengthShift) }

// Set replaces the item at index i by v, in a copy of the contents. It panics if there is
// no item at i when it takes effect. If others delete items, that may not be the item that
// the caller has seen: use Update or CompareAndSwap.
//
// Set is lock-free. It takes effect when the array is replaced or, if it panics, as Load
// does.
func (s *Slice[T]) Set(i int, v T) {
	s.edit("Set", i, func(old []T) []T { // LP(Set): in edit
		items := make([]T, len(old))
		copy(items, old)
		items[i] = v
		return items
	})
}

// Delete removes the item at index i, in a copy of the contents; see Set. The Slice does
// not keep the item alive, but results of Load and Snapshot do.
//
// Delete is lock-free. It takes effect when the array is replaced or, if it panics, as
// Load does.
func (s *Slice[T]) Delete(i int) {
	s.edit("Delete", i, func(old []T) []T { // LP(Delete): in edit
		items := make([]T, len(old)-1)
		copy(items[copy(items, old[:i]):], old[i+1:])
		return items
	})
}

// edit replaces the contents by the result of change. Change must copy, and is no
// user's function: it runs on an array that is frozen.
func (s *Slice[T]) edit(op string, i int, change func(old []T) []T) {
	var others spinWait
	for {
		var w word
		a := s.arr.Load()
		if a != nil {
			w = a.load()
		}
		n := w.length()
		if uint64(i) >= n { // LP(Set, Delete): a panic, at the load of w or the earlier replacement of a
			panic(fmt.Sprintf("cowchangeset: Slice.%s called with index %d of %d items", op, i, n))
		}
		// Freeze first, then copy: after a copy that came first, the word could have
		// moved each time.
		if w&(claimed|frozen) != 0 && others.spin() {
			continue // the owner is about to publish or to replace
		}
		if a.freeze(w) && s.arr.CompareAndSwap(a, adopted(a.version+n+1, change(a.items[:n:n]))) { // LP(Set, Delete)
			return
		}
		// The word moved, or another write replaced the array.
	}
}
