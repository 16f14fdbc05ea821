package table

import (
	"math/bits"
	"unsafe"
)

// BucketSize is the size of a bucket.
const BucketSize = unsafe.Sizeof(bucket[int]{})

// Chains returns how many chains t has, as Load finds it.
func (t *Lines[K, E]) Chains() int { return t.array.Load().chains() }

// Buckets returns how many buckets the chain for a hash has.
func (t *Lines[K, E]) Buckets(hash uint64) (n int) {
	for b := t.array.Load().root(hash); b != nil; b = b.next.Load() {
		n++
	}
	return n
}

// Fits reports whether t has as many chains as its size asks for, or is being resized and has
// chains that have yet to move. Nobody else uses t.
func (t *Lines[K, E]) Fits() bool {
	a := t.array.Load()
	if a.next.Load() == nil {
		return a.fitting(t.size.Load()) == a.chains()
	}
	for i := range uint64(a.chains()) {
		if a.root(i).load() != moved {
			return true
		}
	}
	return false
}

// InitChains is Init with that many chains.
func (t *Lines[K, E]) InitChains(hash Hash[K], n int) {
	t.Init(hash, 0)
	t.begin(n)
}

// GrowTo doubles the chains until there are n, however few cells there are, so
// that the next change makes t shrink.
func (t *Lines[K, E]) GrowTo(n int) {
	for t.Chains() < n {
		a, next := t.array.Load(), newArray[E](2*t.Chains(), t.least)
		a.next.Store(next)
		t.help(a, next, 0, a.chains())
	}
}

// Shrink halves the chains, however many cells there are.
func (t *Lines[K, E]) Shrink() {
	a, next := t.array.Load(), newArray[E](t.Chains()/2, t.least)
	a.next.Store(next)
	t.help(a, next, 0, a.chains())
}

// Hold locks the i-th chain, so that it cannot move, and returns what unlocks it.
func (t *Lines[K, E]) Hold(i int) (release func()) {
	root := t.array.Load().root(uint64(i))
	root.mu.Lock()
	return root.mu.Unlock
}

// Held returns how many mutexes of chains are held, if nobody else uses t.
func (t *Lines[K, E]) Held() (n int) {
	for a := t.array.Load(); a != nil; a = a.next.Load() {
		for i := range a.mask + 1 {
			if !a.has(i) {
				continue
			}
			if root := a.root(i); !root.mu.TryLock() {
				n++
			} else {
				root.mu.Unlock()
			}
		}
	}
	return n
}

// slots calls f for every slot that has a cell, with its array and chain.
func (t *Lines[K, E]) slots(f func(a *array[E], chain uint64, b *bucket[E], i int)) {
	for a := t.array.Load(); a != nil; a = a.next.Load() {
		for i := range a.mask + 1 {
			if !a.has(i) {
				continue
			}
			for b := a.root(i); b != nil && b.load() != moved; b = b.next.Load() {
				for s := slotSet(b.load() & tops); s != 0; s = s.rest() {
					f(a, i, b, s.first())
				}
			}
		}
	}
}

// Wrong returns how many cells are in a chain, or have a tag or ways, that are not
// of their hash, if nobody else uses t.
func (t *Lines[K, E]) Wrong() (n int) {
	t.slots(func(a *array[E], chain uint64, b *bucket[E], i int) {
		hash := t.hash(*keyOf[K](b.slots[i].Load()), 0)
		w, is := b.load().ways(i), a.ways(hash)
		marker := ways(1) << bits.Len(uint(w)) >> 1
		if chain != hash&a.mask || b.load().of(i) != tag(hash) || w == 0 || marker > 1<<bitsAhead || (w^is)&(marker-1) != 0 {
			n++
		}
	})
	return n
}

// Forget makes the ways of all cells unknown, as they are when the set has often
// grown.
func (t *Lines[K, E]) Forget() {
	t.slots(func(_ *array[E], _ uint64, b *bucket[E], i int) {
		b.store(b.load().with(i, b.load().of(i), unknown))
	})
}

// Begin begins to make n chains of t, and moves none.
func (t *Lines[K, E]) Begin(n int) { t.array.Load().next.Store(newArray[E](n, t.least)) }

// Mover returns what moves the i-th chain, unless another holds it. T is being resized.
func (t *Lines[K, E]) Mover(i int) (move func()) {
	a := t.array.Load()
	next := a.next.Load()
	return func() { t.help(a, next, uint64(i), 1) }
}

// Resizing reports whether t is being resized.
func (t *Lines[K, E]) Resizing() bool { return t.array.Load().next.Load() != nil }

// Resizes returns how often t has grown and shrunk.
func (t *Lines[K, E]) Resizes() (grown, shrunk int64) { return t.totalGrowths, t.totalShrinks }

// Gone returns how many chains have moved to the next array.
func (t *Lines[K, E]) Gone() int { return int(t.array.Load().gone.Load()) }

// Segments returns how many segments there are, with those of the next array.
func (t *Lines[K, E]) Segments() (n int) {
	for a := t.array.Load(); a != nil; a = a.next.Load() {
		for i := range a.segments {
			if a.has(uint64(i) * segmentChains) {
				n++
			}
		}
	}
	return n
}

// Portion is how many chains a call moves besides its own, and how many where t
// shrinks.
func (t *Lines[K, E]) Portion() (grows, shrinks int) { return t.portion(), sparse * t.portion() }

// SegmentSize is the size of a segment.
const SegmentSize = unsafe.Sizeof(segment[int]{})

// Having returns the slots of which having says that they have the tag of hash,
// and those whose tag it is, for a bucket with cells of those hashes, of which 0
// is none.
func Having(hashes [slotsPerBucket]uint64, hash uint64) (said, are uint64) {
	var t tags
	for i, h := range hashes {
		if h != 0 {
			t = t.with(i, tag(h), ways(h&0xf))
			if tag(h) == tag(hash) {
				are |= 0x80 << (8 * i)
			}
		}
	}
	return uint64(t.having(tag(hash))), are
}

// HoldNext is Hold for a chain of the next array.
func (t *Lines[K, E]) HoldNext(i int) (release func()) {
	root := t.array.Load().next.Load().root(uint64(i))
	root.mu.Lock()
	return root.mu.Unlock
}

// Skip takes the next n chains as if to move them.
func (t *Lines[K, E]) Skip(n int) { t.array.Load().cursor.Add(uint64(n)) }
