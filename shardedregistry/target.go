package shardedregistry

import (
	"fmt"

	"github.com/latchfree/latchfree/internal/atomics"
)

// place is where an operation that is given a key works: on that key of that
// registry. It is immutable, but for what last points to.
//
// Who has found a cell goes on with the key of that, which is equal and need not be
// the same: so nothing that stays refers to the memory of the key that was given.
type place[K comparable] struct {
	root  *root[K]
	key   hkey[K] // normalised
	given K       // as the caller spelled it

	// last is nil, or the word in which a Ref remembers the cell of its key.
	last *atomics.Pointer[cell[K]]

	unscoped bool // errors show keys without their Space, as in a View
}

// locate returns the place of key, or an error that matches ErrInvalidKey.
func (r *core[K]) locate(key K) (place[K], error) { return r.install().locate(key) }

func (o *root[K]) locate(key K) (p place[K], err error) {
	k, err := o.hashed(key)
	if err != nil {
		return p, err
	}
	if k.Key != k.Key { //nolint:staticcheck // true for NaN
		return p, fmt.Errorf("%w: %v is not equal to itself", ErrInvalidKey, unscoped(key))
	}
	return place[K]{root: o, key: k, given: key}, nil
}

// shown returns what an error says of a key.
func (p *place[K]) shown(k K) any {
	if p.unscoped {
		return unscoped(k)
	}
	return k
}

// loadLive returns the cell of the key and its record, or nil and nil if the
// key is absent: see root.loadLive.
func (p *place[K]) loadLive() (*cell[K], *record) {
	if p.last != nil {
		return p.recall()
	}
	return p.root.loadLive(p.key)
}

// recall is loadLive for a Ref. A cell that is alive is the one in the table,
// because cells leave it dead. One that is dead may have died long ago and says
// nothing about now, so that the table is asked.
//
// What is remembered is a hint. A slow one may store what is older than what
// others have found since; then it is dead, or absent, and the next to read it
// finds that out.
func (p *place[K]) recall() (*cell[K], *record) {
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
