package table

import "slices"

// resize goes on with resizing the set, or begins with it if that is due. It moves
// a portion of the chains and leaves the others to later writers.
//
// It waits for nobody. It passes over a chain whose mutex another holds: if the
// holder does not move it, a later call does when cursor comes round again.
func (t *Lines[K, E]) resize() {
	for budget := t.portion(); ; {
		a := t.array.Load()
		next := a.next.Load()
		if next == nil {
			// Only the array where everybody begins has no next. So if the CAS succeeds,
			// a has been that since before the size was read.
			n := a.fitting(t.size.Load())
			if n == a.chains() {
				return
			}
			next = a.next.Install(newArray[E](n, t.least)) // or another begins
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
		t.help(a, next, a.cursor.Add(uint64(count))-uint64(count), count)
		if t.array.Load() == a {
			return
		}
		// All chains have moved, and another resize may be due.
	}
}

// help moves count chains of a from the first on, except those that have moved
// already and those for which another holds a mutex that the move takes.
func (t *Lines[K, E]) help(a, next *array[E], first uint64, count int) {
	var few [usualBuckets]tags
	for i := range uint64(count) {
		i = (first + i) & a.mask
		root := a.root(i)
		if root.load() == moved {
			continue
		}
		next.ensure(i)
		next.ensure(i + a.mask + 1) // the same if next is smaller
		saw := t.look(a, next, root, few[:0])
		if root.mu.TryLock() {
			t.move(a, next, i, saw)
			root.mu.Unlock()
		}
	}
}

// moveOrLock moves the i-th chain of a, which waits for its root only, and reports
// whether it has moved, now or before. If not, the root is locked when it returns:
// there is no segment for the chain yet, or another holds the mutex of where it
// would move to.
func (t *Lines[K, E]) moveOrLock(a, next *array[E], i uint64) (gone bool) {
	root := a.root(i)
	if root.load() == moved {
		return true
	}
	var few [usualBuckets]tags
	var saw []tags
	can := next.has(i + a.mask + 1) // the segment that help makes last
	if can {
		saw = t.look(a, next, root, few[:0])
	}
	root.mu.Lock()
	if can && t.move(a, next, i, saw) || root.load() == moved {
		root.mu.Unlock()
		return true
	}
	return false
}

// move moves the i-th chain of a, which is locked, to next, where there are the
// segments for it, and reports whether it has moved, now or before. It does not if
// it takes a mutex that another holds. Saw is what look has returned for it.
//
// It takes effect when the tags of the chain's root are stored: until then nobody
// looks for these keys in next. The call that moves the last chain makes next the
// array where everybody begins.
func (t *Lines[K, E]) move(a, next *array[E], i uint64, saw []tags) bool {
	root := a.root(i)
	switch {
	case root.load() == moved:
		return true
	case next.mask > a.mask:
		split(root, [2]*bucket[E]{next.root(i), next.root(i + a.mask + 1)}, saw)
	default:
		to, half := next.root(i), ways(0)
		if i > next.mask {
			half = 1
		}
		if !to.mu.TryLock() {
			return false
		}
		merge(root, to, half)
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

// usualBuckets is how many buckets hardly any chain has more than.
const usualBuckets = 4

// look hashes the keys of those cells in the chain of root, a chain of a, whose
// ways split will not find in the tags, and appends the ways of each bucket to to.
// A.next must have been loaded before, so that all that came to the chain from
// another array is there. No mutex is held.
func (t *Lines[K, E]) look(a, next *array[E], root *bucket[E], to []tags) []tags {
	if next.mask < a.mask {
		return nil // merge needs none
	}
	for b := root; b != nil; b = b.next.Load() {
		now, saw := b.load(), tags(0)
		for s := slotSet(now & tops); s != 0; s = s.rest() {
			if i := s.first(); now.ways(i) == unknown {
				if e := b.slots[i].Load(); e != nil {
					saw = saw.with(i, 0, a.ways(t.hash(*keyOf[K](e), 0)))
				}
			}
		}
		to = append(to, saw)
	}
	return to
}

// split fills the two chains that take what is in that of root, and nothing else,
// so that nobody else is there yet. Saw is what look has returned for the chain.
//
// Cells that Compute adds have ways. So a slot of unknown ways has had a cell of the
// same key since its array was filled, and look has seen that cell.
func split[E any](root *bucket[E], roots [2]*bucket[E], saw []tags) {
	var to [2]filler[E]
	for b := root; b != nil; b = b.next.Load() {
		now, hashed := b.load(), tags(0)
		if len(saw) > 0 { // else the bucket has come since
			hashed, saw = saw[0], saw[1:]
		}
		for s := slotSet(now & tops); s != 0; s = s.rest() {
			i := s.first()
			w := now.ways(i)
			if w == unknown {
				w = hashed.ways(i)
			}
			half := &to[w.half()]
			if half.b == nil {
				half.b = roots[w.half()]
			}
			half.add(now.of(i), w.grown(), b.slots[i].Load())
		}
	}
	to[0].end()
	to[1].end()
}

// merge adds what is in the chain of root to that of to, which is locked too, and
// which another chain moves to as well. Half says which of the two this is.
func merge[E any](root, to *bucket[E], half ways) {
	for b := root; b != nil; b = b.next.Load() {
		now := b.load()
		for s := slotSet(now & tops); s != 0; s = s.rest() {
			i := s.first()
			to.put(now.of(i), now.ways(i).shrunk(half), b.slots[i].Load())
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
