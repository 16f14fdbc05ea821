package cowchangeset

import "fmt"

// Set replaces the item at index i by v, in a copy of the contents. It panics
// if there is no item at i when it takes effect: if others delete items, what
// is at an index may be another item than the caller has seen there, or none.
// Use Update to look for the item, or CompareAndSwap to insist on what was seen.
//
// Appends in place cannot overtake a Set while it copies, as they can an Update
// while its function runs: so a Set returns though others append without end.
//
// Set is lock-free. It takes effect when the array is replaced or, if it
// panics, as Load does.
func (s *Slice[T]) Set(i int, v T) {
	s.edit("Set", i, func(old []T) []T { // LP(Set): in edit
		items := make([]T, len(old))
		copy(items, old)
		items[i] = v
		return items
	})
}

// Delete removes the item at index i, and moves those behind it down by one, in
// a copy of the contents. It panics if there is no item at i when it takes
// effect; see Set. The Slice does not keep the item alive, though what Load and
// Snapshot returned before does.
//
// Delete is lock-free. It takes effect when the array is replaced or, if it
// panics, as Load does.
func (s *Slice[T]) Delete(i int) {
	s.edit("Delete", i, func(old []T) []T { // LP(Delete): in edit
		items := make([]T, len(old)-1)
		copy(items[copy(items, old[:i]):], old[i+1:])
		return items
	})
}

// edit replaces the contents by what change makes of them. Change must copy,
// and is no user's: it runs on an array that is frozen.
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
		// The copy is made of what is frozen: after one that was made before, the
		// word could have moved each time.
		if s.hold(a, w, &others) &&
			s.arr.CompareAndSwap(a, exact(a.version+n+1, change(a.items[:n:n]))) { // LP(Set, Delete)
			return
		}
		// The word moved, its owner may be about to move it, or another write
		// replaced the array.
	}
}

// Clip gives back the room that appends have made and not used, and whatever
// else the contents keep alive: an array of which Update kept a part, or what an
// Append that is stuck halfway has copied. It copies the contents, unless they
// are an array of their own already. The next Append copies them again.
//
// Clip changes no items, and therefore no version.
//
// Clip is lock-free. It takes effect when the array is replaced or, if it is as
// small as can be, when it is loaded.
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

// hold freezes a at w, after waiting for those who have claimed or frozen it. It
// fails if they may be about to do something, or the word is no longer w.
func (s *Slice[T]) hold(a *array[T], w word, others *spinWait) bool {
	if w&(claimed|frozen) != 0 && others.spin() {
		return false
	}
	return a.freeze(w)
}

// exact returns an array of items, which nobody else has, without room.
func exact[T any](version uint64, items []T) *array[T] {
	a := adopted(version, items)
	a.exact = true
	return a
}
