package table

import (
	"hash/maphash"
	"iter"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Lines is a set of cells, each of which begins with its key, a K. It has
// at most one cell of a key. Make it part of something and call Init.
//
// It is a cache-line hash table: a look-up reads the line of a bucket and the
// cell itself, and takes no lock. The structure is CLHT of David, Guerraoui and
// Trigonakis (Asynchronized Concurrency, ASPLOS 2015), with the tags of
// xsync.MapOf; unlike both, it holds the caller's own cells, which spares the
// look-up a line, and all writers resize it, each by moving a few chains.
//
// Progress: Load is wait-free but for the length of a chain and the number of
// times that the set is resized meanwhile, and so is a call that finds by it that
// there is nothing to do. A call that changes the set waits for the mutex of one
// chain at a time, and so does All between the cells that it yields. While the set
// is resized, a call that changes it also moves chains, a number that does not
// depend on the size of the set, and waits for nobody to do so. To that end it
// hashes keys again, of one in 14 of the cells that move while a set grows from
// nothing, and holds no mutex meanwhile. The comparison of keys is the only user
// code that runs while a mutex is held.
type Lines[K comparable, E any] struct {
	hash  Hash[K]
	least int // number of chains

	// array is where everybody begins. The call that moves the last of its chains
	// replaces it by the next one.
	array atomics.Pointer[array[E]]

	_ atomics.CacheLinePad

	// size is the number of cells, but for the calls in progress and what is in the
	// parts.
	size atomics.Int64

	// The call that moves the last chain of an array counts that here.
	totalGrowths, totalShrinks int64 // named as xsync's, for tests that look for both

	spread

	limits
}

// Init makes t an empty set of cells whose keys are hashed by hash, with room for
// so many, which it never shrinks below. It must come before all else, and only
// once. It panics if E does not begin with a K.
//
// Hash is called for some of the cells that move when the set grows, and by All,
// never while a mutex is held. The caller that adds a cell must have called it for the
// cell's key before, so that it does not panic.
func (t *Lines[K, E]) Init(hash Hash[K], room int) {
	mustBeCell[K, E]()
	t.hash = hash
	t.least = chainsFor(room)
	t.begin(t.least)
}

// begin makes t begin with n chains.
func (t *Lines[K, E]) begin(n int) {
	a := newArray[E](n, t.least)
	for i := range a.segments {
		a.ensure(uint64(i) * segmentChains)
	}
	t.array.Store(a)
}

// Find returns the cell of k, or nil, and the hash of k. It takes effect as Load does.
// It is the quickest way to a cell where the caller does not have the hash. Keys makes it,
// and must be the Keys that made the hash function given to Init. Find panics
// as keys.Hash does.
//
// Nearly always the root's tags name one slot, which has the cell, or none in a
// chain of one bucket. Then Find keeps nothing on the stack. All else is left to
// Load, which begins anew.
func (t *Lines[K, E]) Find(keys *Keys[K], k K) (e *E, h uint64) {
	if hashesAtRuntime {
		h = maphash.Comparable(keys.runtimeSeed(), k) // hash would be called, and this is inlined
	} else {
		h = hash(keys.seed, k)
	}
	b := t.array.Load().root(h)
	now := b.load()
	if s := now.having(tag(h)); s != 0 {
		if e = b.slots[s.first()].Load(); e != nil && *keyOf[K](e) == k {
			return e, h
		}
	} else if now != moved && b.next.Load() == nil {
		return nil, h
	}
	return t.Load(Hashed[K]{Hash: h, Key: k}), h
}

// Load returns the cell of k, or nil. It takes effect when the cell's slot is
// read; and if there is none, when the tags of a bucket are read, or an empty slot
// whose tag is set already, or else when the cell left, or the bucket moved, while
// it was being read.
func (t *Lines[K, E]) Load(k Hashed[K]) *E {
	one := tag(k.Hash)
	for a := t.array.Load(); ; a = a.next.Load() {
		b := a.root(k.Hash)
		now := b.load()
		for root := now; ; now = b.load() {
			for s := now.having(one); s != 0; s = s.rest() {
				// Nil if it has left since.
				if e := b.slots[s.first()].Load(); e != nil && *keyOf[K](e) == k.Key {
					return e
				}
			}
			if root == moved {
				break
			}
			if b = b.next.Load(); b == nil {
				return nil
			}
		}
	}
}

// Compute replaces the cell of k by what f returns for it, where nil stands for
// absent both ways, and returns the result. A cell that f returns begins with k
// and has never been in a set before, unless it is the one that is there.
//
// f runs while a mutex is held and without a deferred unlock. It must do a
// handful of loads and stores, and call nothing that a user supplied.
func (t *Lines[K, E]) Compute(k Hashed[K], f func(now *E) *E) *E {
	a, root, resizing := t.lock(k.Hash)
	b, i, now := find(root, k)
	e := f(now)
	grown := int64(0)
	switch {
	case e == now:
	case now == nil:
		root.put(tag(k.Hash), a.ways(k.Hash), e)
		grown = 1
	case e == nil:
		b.store(b.load().with(i, 0, 0))
		b.slots[i].Store(nil)
		grown = -1
	default:
		b.slots[i].Store(e)
	}
	root.mu.Unlock()
	if grown != 0 && t.count(k.Hash, grown, a.chains()) && a.fitting(t.size.Load()) != a.chains() || resizing {
		t.resize()
	}
	return e
}

// lock locks the chain for a hash where it is now, and returns its array and its
// root, and whether the set is being resized. It moves the chain if that is due and
// needs neither waiting nor memory, so that a chain that is always in use moves too.
func (t *Lines[K, E]) lock(hash uint64) (a *array[E], root *bucket[E], resizing bool) {
	for a = t.array.Load(); ; {
		root = a.root(hash)
		if next := a.next.Load(); next != nil {
			if !t.moveOrLock(a, next, hash&a.mask) {
				return a, root, true
			}
			a, resizing = next, true
			continue
		}
		root.mu.Lock()
		if a.next.Load() == nil {
			return a, root, resizing
		}
		root.mu.Unlock() // keys may have to be hashed first
	}
}

// find returns where the cell of k is in the chain of root, which is locked, and
// the cell itself, or nil.
func find[K comparable, E any](root *bucket[E], k Hashed[K]) (b *bucket[E], i int, e *E) {
	for b = root; b != nil; b = b.next.Load() {
		for s := b.load().having(tag(k.Hash)); s != 0; s = s.rest() {
			i = s.first()
			if e = b.slots[i].Load(); *keyOf[K](e) == k.Key { // never nil while the chain is locked
				return b, i, e
			}
		}
	}
	return nil, 0, nil
}

// All yields every cell. It is weakly consistent: at most one of each key, one
// of every key that is present throughout, and any subset of those that come or
// go meanwhile. The loop body runs outside every lock and may use the set.
func (t *Lines[K, E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		cells := make([]*E, 0, 4*slotsPerBucket) // more than nearly every chain has
		n := t.array.Load().mask + 1
		for i := range n {
			// The array is loaded anew: an array that is held keeps all that followed it,
			// with what was in their chains when they moved.
			cells = t.collect(t.array.Load(), i, n-1, cells[:0])
			for _, e := range cells {
				if !yield(e) {
					return
				}
			}
			clear(cells) // keeps nothing that has left
		}
	}
}

// Len returns the number of cells: exact while nobody writes, and otherwise off
// by at most the calls in progress. If counting is spread, it may always be off by
// a quarter of the largest number of chains that there have been.
func (t *Lines[K, E]) Len() int { return max(0, int(t.size.Load())) }
