package table

import "unsafe"

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

// Fits reports whether t has as many chains as its size asks for.
func (t *Lines[K, E]) Fits() bool {
	a := t.array.Load()
	return a.next.Load() != nil || t.fitting(a.chains(), t.size.Load()) == a.chains()
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
		a, next := t.array.Load(), newArray[E](2*t.Chains())
		a.next.Store(next)
		for i := range a.mask + 1 {
			t.help(a, next, i)
		}
	}
}

// Hold locks the i-th chain, so that it cannot move, and returns what unlocks it.
func (t *Lines[K, E]) Hold(i int) (release func()) {
	root := t.array.Load().root(uint64(i))
	root.mu.Lock()
	return root.mu.Unlock
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
			t = t.with(i, tag(h))
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
