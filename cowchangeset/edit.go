package cowchangeset

import "fmt"

// Set replaces the item at index i by v, in a copy of the contents. It panics if there
// is no item at i when it takes effect. If others delete items, the item at an index
// may not be the one that the caller has seen there. Use Update to look for the item,
// or CompareAndSwap to require unchanged contents.
//
// Appends in place cannot overtake a Set while it copies, as they can an Update while
// its function runs: a Set returns although others append without end.
//
// Set is lock-free. It takes effect when the array is replaced or, if it panics, as
// Load does.
func (s *Slice[T]) Set(i int, v T) {
	s.edit("Set", i, func(old []T) []T { // LP(Set): in edit
		items := make([]T, len(old))
		copy(items, old)
		items[i] = v
		return items
	})
}

// Delete removes the item at index i, and moves those behind it down by one, in a copy
// of the contents. It panics if there is no item at i when it takes effect; see Set.
// The Slice does not keep the deleted item alive; results of earlier calls of Load and
// Snapshot do.
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
		if s.hold(a, w, &others) &&
			s.arr.CompareAndSwap(a, exact(a.version+n+1, change(a.items[:n:n]))) { // LP(Set, Delete)
			return
		}
		// The word moved, its owner may be about to move it, or another write
		// replaced the array.
	}
}

// Clip gives back the room that appends have made and not used. It also gives back the
// rest of an array of which Update kept a part, and the items that an Append which is
// stuck halfway has copied. It copies the contents, unless they are an array of their
// own already. The next Append copies them again.
//
// Clip changes no items, and therefore no version.
//
// Clip is lock-free. It takes effect when the array is replaced or, if it is as small
// as can be, when it is loaded.
func (s *Slice[T]) Clip() {
	var others spinWait
	for {
		a := s.arr.Load() // LP(Clip): nothing to give back
		if a == nil || a.exact {
			return
		}
		w := a.load()
		n := w.length()
		if s.hold(a, w, &others) {
			items := make([]T, n)
			copy(items, a.items)
			if s.arr.CompareAndSwap(a, exact(a.version+n, items)) { // LP(Clip)
				return
			}
		}
		// As in edit.
	}
}

// hold freezes a at w, after waiting for the goroutines that have claimed or frozen it.
// It fails if they may be about to do something, or the word is no longer w.
func (s *Slice[T]) hold(a *array[T], w word, others *spinWait) bool {
	if w&(claimed|frozen) != 0 && others.spin() {
		return false
	}
	return a.freeze(w)
}

// exact returns an array, without room, of items that no other array shares.
func exact[T any](version uint64, items []T) *array[T] {
	a := adopted(version, items)
	a.exact = true
	return a
}
