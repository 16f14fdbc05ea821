package table

import "unsafe"

// BucketSize is the size of a bucket.
const BucketSize = unsafe.Sizeof(bucket[int]{})

// Chains returns how many chains t has, as Load finds it.
func (t *Lines[K, E]) Chains() int { return len(t.array.Load().roots) }

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
	return t.fitting(len(a.roots), t.size.Load()) == len(a.roots)
}

// InitChains is Init with that many chains.
func (t *Lines[K, E]) InitChains(hash Hash[K], n int) {
	t.Init(hash, 0)
	t.array.Store(newArray[E](n))
}

// GrowTo doubles the chains until there are n, however few cells there are, so
// that the next change makes t shrink.
func (t *Lines[K, E]) GrowTo(n int) {
	for t.Chains() < n {
		t.resize(t.array.Load(), 2*t.Chains())
	}
}

// Hold locks the i-th chain, so that who resizes gets stuck there, and returns
// what unlocks it.
func (t *Lines[K, E]) Hold(i int) (release func()) {
	root := &t.array.Load().roots[i]
	root.mu.Lock()
	return root.mu.Unlock
}

// Resizing reports whether t is being resized.
func (t *Lines[K, E]) Resizing() bool { return t.resizing.Load() }

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
