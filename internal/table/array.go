package table

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// array is what a Lines consists of between two resizes: a power of two of
// chains, of which the low bits of a hash choose one.
//
// While the set is resized, chains move to the next array one by one, each under
// its own mutex, by who resizes or by a writer that needs one sooner. A chain
// that has moved is never written again. So a key is found in the first array of
// those that follow each other whose chain for it has not moved.
type array[E any] struct {
	roots []bucket[E]

	// next is nil until the set is resized. It is set once.
	next atomics.Pointer[array[E]]
}

const (
	minChains = 8

	// A set grows when there are more than half as many cells as there
	// are slots in the roots, and shrinks when there are fewer than a sixteenth,
	// so that it is far from both after either.
	growAt   = slotsPerBucket / 2.
	shrinkAt = slotsPerBucket / 16.
)

func newArray[E any](n int) *array[E] {
	return &array[E]{roots: make([]bucket[E], n)}
}

// mask has the bits of a hash that choose a chain.
func (a *array[E]) mask() uint64 { return uint64(len(a.roots) - 1) }

func (a *array[E]) root(hash uint64) *bucket[E] { return &a.roots[hash&a.mask()] }

// chainsFor returns how many chains a set needs for so many cells.
func chainsFor(room int) int {
	n := minChains
	for growAt*float64(n) < float64(room) {
		n *= 2
	}
	return n
}

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

// resizeIf resizes the set if that is due now that a, in which a cell has come
// or gone, holds size cells. Others write meanwhile, and wait for nobody but who
// holds a mutex of the same chain. They leave it to this one to resize again.
func (t *Lines[K, E]) resizeIf(a *array[E], size int64) {
	for {
		n := t.fitting(len(a.roots), size)
		if n == len(a.roots) || t.resizing.Load() || !t.resizing.CompareAndSwap(false, true) {
			return
		}
		// Nobody else replaces the array now. Another may have since a was loaded.
		if t.array.Load() == a {
			t.resize(a, n)
		}
		t.resizing.Store(false)
		a, size = t.array.Load(), t.size.Load()
	}
}

// resize replaces a, which is where everybody begins, by an array of n chains,
// which is twice or half as many.
func (t *Lines[K, E]) resize(a *array[E], n int) {
	next := newArray[E](n)
	a.next.Store(next)
	for i := range a.roots {
		root := &a.roots[i]
		root.mu.Lock()
		t.move(root, next, n > len(a.roots))
		root.mu.Unlock()
	}
	t.array.Store(next)
	if n > len(a.roots) {
		t.totalGrowths++
	} else {
		t.totalShrinks++
	}
}

// move moves the chain of root, which is locked, to next unless it has moved
// already. It takes effect when root's tags are stored: until then nobody looks
// for these keys in next.
func (t *Lines[K, E]) move(root *bucket[E], next *array[E], grows bool) {
	if root.load() == moved {
		return
	}
	if grows {
		t.split(root, next)
	} else {
		t.merge(root, next)
	}
	root.store(moved)
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
			if hash&(next.mask()&^(next.mask()>>1)) != 0 { // the bit that root's array does not ask for
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

// merge adds what is in the chain of root to one of next, which another chain
// moves to as well.
func (t *Lines[K, E]) merge(root *bucket[E], next *array[E]) {
	for b := root; b != nil; b = b.next.Load() {
		for s := slotSet(b.load() & tops); s != 0; s = s.rest() {
			e := b.slots[s.first()].Load()
			hash := t.hash(*keyOf[K](e), 0)
			to := next.root(hash)
			to.mu.Lock()
			to.put(tag(hash), e)
			to.mu.Unlock()
		}
	}
}

// collect appends the cells whose hashes end in end, as far as mask goes, from
// the chains of a and, where these have moved, of the arrays that follow.
func (t *Lines[K, E]) collect(a *array[E], end, mask uint64, to []*E) []*E {
	// If a is larger than what mask was made for, these are several chains.
	for i := end & a.mask(); i < uint64(len(a.roots)); i += mask + 1 {
		root := &a.roots[i]
		root.mu.Lock()
		if root.load() == moved {
			root.mu.Unlock()
			to = t.collect(a.next.Load(), max(end, i), max(mask, a.mask()), to)
			continue
		}
		from := len(to)
		to = root.cells(to)
		root.mu.Unlock()
		if a.mask() < mask { // then the chain has others besides
			kept := slices.DeleteFunc(to[from:], func(e *E) bool { return t.hash(*keyOf[K](e), 0)&mask != end })
			to = to[:from+len(kept)]
		}
	}
	return to
}
