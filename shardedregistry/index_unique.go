package shardedregistry

import (
	"math/bits"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// valueLocks are the mutexes of the values of unique indexes: each value has one, by
// its hash. A writer whose record gives a key a unique value holds the value's lock
// from looking for another key that has it until the record is stored. So no other key
// gains the value meanwhile. A write that keeps or loses a value needs no lock, and no
// function of a user runs under one.
//
// There are 64, so that a set of them is a word.
type valueLocks [64]struct {
	atomics.Mutex
	_ atomics.CacheLinePad
}

// valueLockSet is a set of locks.
type valueLockSet uint64

// swap is target.swap under the constraints.
func (cs *constraints[K, V]) swap(t target[K, V], k hkey[K], c *cell[K, V], old, next *record[K, V]) (stored bool, err error) {
	keys, others := next.indexKeys(), old.indexKeys()
	held := cs.lock(keys, others)
	if by := cs.rival(t.root, keys, others); by != nil {
		cs.unlock(held)
		if c.rec.Load() != old {
			return false, nil // the error would depend on a record that is no longer there
		}
		return false, by.taken()
	}
	cs.pin(k, keys, others)
	stored = c.rec.CompareAndSwap(old, next)
	cs.unlock(held)
	if !stored {
		cs.unpin(k, keys, others)
	}
	return stored, nil
}

// enlist is publish under the constraints.
func (cs *constraints[K, V]) enlist(t target[K, V], fresh *cell[K, V], rec *record[K, V]) (c *cell[K, V], present *record[K, V], err error) {
	rt, k, keys := t.root, t.key, rec.indexKeys()
	held := cs.lock(keys, nil)
	for { // at most once for each index key, which nobody gains meanwhile
		by := cs.rival(rt, keys, nil)
		if by == nil {
			break
		}
		c, present = rt.loadLive(k)
		if present == nil && rt.holder(by.key, by.indexKey) == nil {
			continue // it may have lost the value while k was present
		}
		cs.unlock(held)
		if present == nil {
			err = by.taken()
		}
		return c, present, err
	}
	cs.pin(k, keys, nil)
	c, present = rt.publish(k, fresh, rec)
	cs.unlock(held)
	if c != fresh {
		cs.unpin(k, keys, nil)
	}
	return c, present, nil
}

// lock takes the locks of the unique values among those of index keys that are not
// in others, in the order of their numbers, so that no two wait for each other.
func (cs *constraints[K, V]) lock(keys, others []indexKey) (held valueLockSet) {
	held = cs.locksOf(keys, others)
	cs.lockAll(held)
	return held
}

// locksOf returns the locks that lock takes.
func (cs *constraints[K, V]) locksOf(keys, others []indexKey) (set valueLockSet) {
	if cs.locks == nil {
		return 0
	}
	missing(keys, others, func(t indexKey) {
		if cs.indexes[t.index].unique {
			set |= 1 << (t.value.Hash % uint64(len(cs.locks)))
		}
	})
	return set
}

func (cs *constraints[K, V]) lockAll(set valueLockSet) {
	for ; set != 0; set &= set - 1 {
		cs.locks[bits.TrailingZeros64(uint64(set))].Lock()
	}
}

// unlock unlocks what lock has locked.
func (cs *constraints[K, V]) unlock(held valueLockSet) {
	for ; held != 0; held &= held - 1 {
		cs.locks[bits.TrailingZeros64(uint64(held))].Unlock()
	}
}

// rival is a key that has a unique value which another key wants.
type rival[K comparable, V any] struct {
	index    string // its name
	indexKey indexKey
	key      hkey[K]
}

// taken returns the error of an operation that wants the rival's value.
func (by *rival[K, V]) taken() error {
	return &UniqueError{Index: by.index, Value: by.indexKey.value.Key, Key: by.key.Key}
}

// rival returns a key that has one of the unique values among index keys that are not
// in others, or nil. It is not the caller's key, unless that has changed meanwhile.
func (cs *constraints[K, V]) rival(rt *root[K, V], keys, others []indexKey) (found *rival[K, V]) {
	missing(keys, others, func(t indexKey) {
		x := &cs.indexes[t.index]
		if found != nil || !x.unique {
			return
		}
		x.on(t.value).all(func(one posting[K]) bool {
			if c := rt.holder(one.key, t); c != nil {
				found = &rival[K, V]{x.name, t, c.named(one.key.Hash)}
			}
			return found == nil
		})
	})
	return found
}

// holder returns the cell of k if k has an index key now, or nil. A caller that holds
// the index key's lock and finds one twice knows that k has had the index key in
// between.
func (rt *root[K, V]) holder(k hkey[K], t indexKey) *cell[K, V] {
	c, rec := rt.loadLive(k)
	if !slices.Contains(rec.indexKeys(), t) {
		return nil
	}
	return c
}
