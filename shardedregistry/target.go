package shardedregistry

import (
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// target is where an operation that is given a key works: on that key of that
// registry. It is immutable, but for what last points to.
//
// Who has found a cell goes on with the key of that, which is equal and need not be
// the same: so nothing that stays refers to the memory of the key that was given.
type target[K comparable] struct {
	root  *root[K]
	key   hkey[K] // normalised
	given K       // as the caller spelled it

	// last is nil, or the word in which a Ref remembers the cell of its key.
	last *atomics.Pointer[cell[K]]

	unscoped bool // errors show keys without their Space, as in a View
}

// locate returns the place of key, or an error that matches ErrInvalidKey.
func (r *core[K]) locate(key K) (target[K], error) { return r.install().locate(key) }

func (rt *root[K]) locate(key K) (t target[K], err error) {
	k, err := rt.hashed(key)
	if err != nil {
		return t, err
	}
	if k.Key != k.Key { //nolint:staticcheck // true for NaN
		return t, fmt.Errorf("%w: %v is not equal to itself", ErrInvalidKey, unscoped(key))
	}
	return target[K]{root: rt, key: k, given: key}, nil
}

// shown returns what an error says of a key.
func (t *target[K]) shown(k K) any {
	if t.unscoped {
		return unscoped(k)
	}
	return k
}

// loadLive returns the cell of the key and its record, or nil and nil if the
// key is absent: see root.loadLive.
func (t *target[K]) loadLive() (*cell[K], *record) {
	if t.last != nil {
		return t.recall()
	}
	return t.root.loadLive(t.key)
}

// recall is loadLive for a Ref. A cell that is alive is the one in the table,
// because cells leave it dead. One that is dead may have died long ago and says
// nothing about now, so that the table is asked.
//
// What is remembered is a hint. A slow one may store what is older than what
// others have found since; then it is dead, or absent, and the next to read it
// finds that out.
func (t *target[K]) recall() (*cell[K], *record) {
	last := t.last.Load()
	if last != nil {
		if rec := t.root.live(last.rec.Load()); rec != nil {
			return last, rec
		}
	}
	c, rec := t.root.loadLive(t.key)
	if c != last {
		t.last.Store(c)
	}
	return c, rec
}
