package shardedregistry

import (
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// place is where an operation that is given a key works: on that key of that
// registry. It belongs to the operation, but for what last points to.
type place[K comparable, V any] struct {
	root  *root[K, V]
	key   hkey[K] // normalised; and as it is stored, once it was found
	given K       // the key as the caller spelled it

	// last is nil, or the word in which a Ref remembers the cell of its key.
	last *atomics.Pointer[cell[K, V]]

	unscoped bool // errors show keys without their Space, as in a View
}

// locate returns the place of key, or an error that matches ErrInvalidKey.
func (r *Registry[K, V]) locate(key K) (p place[K, V], err error) {
	o := r.install()
	k, err := o.hashed(key)
	if err != nil {
		return p, err
	}
	if k.Key != k.Key { //nolint:staticcheck // true for NaN
		return p, fmt.Errorf("%w: %v is not equal to itself", ErrInvalidKey, unscoped(key))
	}
	return place[K, V]{root: o, key: k, given: key}, nil
}

// shown returns what an error says of a key.
func (p *place[K, V]) shown(k K) any {
	if p.unscoped {
		return unscoped(k)
	}
	return k
}

// loadLive returns the cell of the key and its record, or nil and nil if the
// key is absent: see root.loadLive.
//
// From then on p has the key that the cell has, in place of one that is equal. So
// nothing that stays refers to the memory of the key that the caller has given.
func (p *place[K, V]) loadLive() (c *cell[K, V], rec *record[V]) {
	if p.last != nil {
		c, rec = p.recall()
	} else {
		c, rec = p.root.loadLive(p.key)
	}
	if c != nil {
		p.key.Key = c.key
	}
	return c, rec
}

// recall is loadLive for a Ref. A cell that is alive is the one in the table,
// because cells leave it dead. One that is dead may have died long ago and says
// nothing about now, so that the table is asked.
//
// What is remembered is a hint. A slow one may store what is older than what
// others have found since; then it is dead, or absent, and the next to read it
// finds that out.
func (p *place[K, V]) recall() (*cell[K, V], *record[V]) {
	last := p.last.Load()
	if last != nil {
		if rec := p.root.live(last.rec.Load()); rec != nil {
			return last, rec
		}
	}
	c, rec := p.root.loadLive(p.key)
	if c != last {
		p.last.Store(c)
	}
	return c, rec
}
