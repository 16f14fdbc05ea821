package table

import (
	"math"
	"math/bits"

	"github.com/latchfree/latchfree/internal/atomics"
)

// array is what a Lines consists of between two resizes: a power of two of
// chains, of which the low bits of a hash choose one.
//
// While the set is resized, chains move to the next array one by one, each under
// its own mutex. A chain that has moved is never written again. So a key is found
// in the first array of those that follow each other whose chain for it has not
// moved.
type array[E any] struct {
	// roots has the chains of an array that has no more than segmentChains. It is
	// empty in a larger one. It never changes.
	roots []bucket[E]

	// segments has the chains of a larger array. Each is nil until a call moves
	// the first chain to it, and is set by CAS once.
	segments []atomics.Pointer[segment[E]]

	// mask has the bits of a hash that choose a chain. It never changes.
	mask uint64

	// next is nil until the set is resized. The call that begins that sets it by CAS,
	// once.
	next atomics.Pointer[array[E]]

	_ atomics.CacheLinePad // readers read what is before it, while others move chains

	// cursor is where the next helper begins to look for chains to move. It wraps
	// round until all have moved.
	cursor atomics.Uint64

	// gone is how many chains have moved. A call that moves one adds one while it
	// holds the mutex of that chain.
	gone atomics.Int64

	// A set that has more cells than most grows, and one that has fewer than fewest
	// shrinks. They never change, and only writers read them.
	most, fewest int64
}

// segment is a part of an array that is allocated at once: so the time for which a
// call clears memory does not depend on the size of the set.
type segment[E any] [segmentChains]bucket[E]

const (
	minChains = 8

	// A set grows when its cells are more than half of the slots in the roots, or three
	// quarters if there are more chains than fewChains, and shrinks when they are fewer
	// than a sixteenth, so that it is far from both after either. Where the roots fit
	// into a cache, chains of two buckets cost most; beyond that, cache lines do.
	growAt     = slotsPerBucket / 2.
	growManyAt = slotsPerBucket * 3 / 4.
	shrinkAt   = slotsPerBucket / 16.
	fewChains  = 1 << 12

	// sparse is how many chains of a set that shrinks, which hold an eighth as many
	// cells, count as one of a set that grows.
	sparse = 4
)

// newArray returns an array of n chains, without segments, for a set that has least
// chains at least.
func newArray[E any](n, least int) *array[E] {
	a := &array[E]{mask: uint64(n - 1), most: roomOf(n), fewest: math.MinInt64} // size may be below zero for a moment
	if n > least {
		a.fewest = int64(shrinkAt * float64(n))
	}
	if n <= segmentChains {
		a.roots = make([]bucket[E], n)
	} else {
		a.segments = make([]atomics.Pointer[segment[E]], n/segmentChains)
	}
	return a
}

// chains returns how many chains a has.
func (a *array[E]) chains() int { return int(a.mask + 1) }

// fitting returns how many chains a set should have whose array is a, now that it
// has size cells.
func (a *array[E]) fitting(size int64) int {
	switch {
	case size > a.most:
		return 2 * a.chains()
	case size < a.fewest:
		return a.chains() / 2
	}
	return a.chains()
}

// ways returns the ways of a cell in a.
func (a *array[E]) ways(hash uint64) ways {
	return 1<<bitsAhead | ways(hash>>bits.Len64(a.mask))&(1<<bitsAhead-1)
}

// root returns the root of the chain for a hash, or for its low bits. If a has
// segments that chain's must be there, as it is if the chain is where to look for
// the hash, or has been.
//
// The first comparison is the check of bounds that an index needs anyway, and it
// fails for an array of segments, whose roots have no length.
func (a *array[E]) root(hash uint64) *bucket[E] {
	if i := hash & uint64(len(a.roots)-1); i < uint64(len(a.roots)) {
		return &a.roots[i]
	}
	return &a.segments[(hash&a.mask)/segmentChains].Load()[hash%segmentChains]
}

// ensure makes the segment of the i-th chain if there is none. If several calls make
// one at once, one remains.
func (a *array[E]) ensure(i uint64) {
	if !a.has(i) {
		a.segments[(i&a.mask)/segmentChains].CompareAndSwap(nil, new(segment[E]))
	}
}

// has reports whether the segment of the i-th chain is there.
func (a *array[E]) has(i uint64) bool {
	return len(a.segments) == 0 || a.segments[(i&a.mask)/segmentChains].Load() != nil
}

// roomOf returns how many cells n chains have room for before a set grows.
func roomOf(n int) int64 {
	if n > fewChains {
		return int64(growManyAt * float64(n))
	}
	return int64(growAt * float64(n))
}

// chainsFor returns how many chains a set needs for so many cells.
func chainsFor(room int) int {
	n := minChains
	for roomOf(n) < int64(room) {
		n *= 2
	}
	return n
}
