package table

import "slices"

// fitting returns how many chains t should have instead of n, now that it has
// size cells.
func (t *Lines[K, E]) fitting(n int, size int64) int {
	switch {
	case size > int64(growAt*float64(n)):
		return 2 * n
	case n > t.least && size < int64(shrinkAt*float64(n)):
		return n / 2
	}
	return n
}

// resize goes on with resizing the set, or begins with it if that is due. It moves
// a portion of the chains and leaves the others to those who write after.
//
// It waits for nobody. It passes over a chain whose mutex another holds: that one
// moves it, or began before the next array was there, and then the chain is left
// to who comes round again.
func (t *Lines[K, E]) resize() {
	for budget := t.portion(); ; {
		a := t.array.Load()
		next := a.next.Load()
		if next == nil {
			// Only the array where everybody begins has no next. So if the CAS succeeds,
			// a has been that since before the size was read.
			n := t.fitting(a.chains(), t.size.Load())
			if n == a.chains() {
				return
			}
			a.next.CompareAndSwap(nil, newArray[E](n)) // or another begins
			next = a.next.Load()
		}
		if budget == 0 {
			return
		}
		each := 1
		if next.mask < a.mask {
			each = sparse
		}
		count := min(budget*each, a.chains())
		budget -= count / each // a set that shrinks has more chains than sparse
		first := a.cursor.Add(uint64(count)) - uint64(count)
		for i := range uint64(count) {
			t.help(a, next, (first+i)&a.mask)
		}
		if t.array.Load() == a {
			return
		}
		// All chains have moved, and another resize may be due.
	}
}

// help moves the i-th chain of a unless it has moved already, or somebody holds a
// mutex that this takes.
func (t *Lines[K, E]) help(a, next *array[E], i uint64) {
	root := a.root(i)
	if root.load() == moved {
		return
	}
	next.ensure(i)
	next.ensure(i + a.mask + 1) // the same if next is smaller
	if root.mu.TryLock() {
		t.move(a, next, i)
		root.mu.Unlock()
	}
}

// move moves the i-th chain of a, which is locked, to next, and reports whether
// it has moved, now or before. It does not if there is no segment for it yet, or
// if it takes a mutex that another holds.
//
// It takes effect when the tags of the chain's root are stored: until then nobody
// looks for these keys in next. Who moves the last chain makes next the array
// where everybody begins.
func (t *Lines[K, E]) move(a, next *array[E], i uint64) bool {
	root := a.root(i)
	switch {
	case root.load() == moved:
		return true
	case !next.has(i + a.mask + 1): // the segment that help makes last
		return false
	case next.mask > a.mask:
		t.split(root, next)
	default:
		to := next.root(i)
		if !to.mu.TryLock() {
			return false
		}
		t.merge(root, to)
		to.mu.Unlock()
	}
	root.store(moved)
	if a.gone.Add(1) == int64(a.chains()) {
		t.replace(a, next)
	}
	return true
}

// replace makes next the array where everybody begins, in place of a, all of
// whose chains have moved.
func (t *Lines[K, E]) replace(a, next *array[E]) {
	if next.mask > a.mask {
		t.totalGrowths++
	} else {
		t.totalShrinks++
	}
	t.array.Store(next)
}

// split fills the two chains of next that take what is in that of root, and
// nothing else, so that nobody else is there yet.
func (t *Lines[K, E]) split(root *bucket[E], next *array[E]) {
	var to [2]filler[E]
	for b := root; b != nil; b = b.next.Load() {
		for s := slotSet(b.load() & tops); s != 0; s = s.rest() {
			e := b.slots[s.first()].Load()
			hash := t.hash(*keyOf[K](e), 0)
			half := &to[0]
			if hash&(next.mask&^(next.mask>>1)) != 0 { // the bit that root's array does not ask for
				half = &to[1]
			}
			if half.b == nil {
				half.b = next.root(hash)
			}
			half.add(tag(hash), e)
		}
	}
	to[0].end()
	to[1].end()
}

// merge adds what is in the chain of root to that of to, which is locked too, and
// which another chain moves to as well.
func (t *Lines[K, E]) merge(root, to *bucket[E]) {
	for b := root; b != nil; b = b.next.Load() {
		for s := slotSet(b.load() & tops); s != 0; s = s.rest() {
			e := b.slots[s.first()].Load()
			to.put(tag(t.hash(*keyOf[K](e), 0)), e)
		}
	}
}

// collect appends the cells whose hashes end in end, as far as mask goes, from
// the chains of a and, where these have moved, of the arrays that follow.
func (t *Lines[K, E]) collect(a *array[E], end, mask uint64, to []*E) []*E {
	// If a is larger than what mask was made for, these are several chains.
	for i := end & a.mask; i <= a.mask; i += mask + 1 {
		root := a.root(i)
		root.mu.Lock()
		if root.load() == moved {
			root.mu.Unlock()
			to = t.collect(a.next.Load(), max(end, i), max(mask, a.mask), to)
			continue
		}
		from := len(to)
		to = root.cells(to)
		root.mu.Unlock()
		if a.mask < mask { // then the chain has others besides
			kept := slices.DeleteFunc(to[from:], func(e *E) bool { return t.hash(*keyOf[K](e), 0)&mask != end })
			to = to[:from+len(kept)]
		}
	}
	return to
}
