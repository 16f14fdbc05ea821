package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// Ref is a handle that reads one key of a [Registry], present or not, through its deletions and
// creations. A read normalises and hashes nothing, and takes two loads while the key stays present.
// Refs may be copied, kept and used by any number of goroutines. A Ref of an invalid key, and the
// zero Ref, find their key absent.
//
// It keeps its registry alive, and, if the key was deleted, old values until it is next used.
type Ref[K comparable, V any] struct {
	anchor *anchor[K, V] // nil in the zero Ref, and for an invalid key
}

// anchor is what the copies of a Ref share. It is immutable but for cell.
type anchor[K comparable, V any] struct {
	_ [0]*V // so that no Ref can be converted to one of other values

	root *root[K, V]
	key  hkey[K] // normalised

	// cell is nil, or a cell that was found for the key, dead or alive. Readers
	// replace one that they find dead by what the table holds.
	cell atomics.Pointer[cell[K, V]]
}

// Ref returns a handle to key, which need not be present or valid.
//
// Ref is wait-free. It takes effect at any moment: it reads nothing of key.
func (r *Registry[K, V]) Ref(key K) Ref[K, V] {
	rt := r.install()
	k, err := rt.hashed(key)
	if err != nil {
		return Ref[K, V]{}
	}
	return Ref[K, V]{&anchor[K, V]{root: rt, key: k}}
}

// Get is [Registry.Get] of the key.
//
// Get is wait-free. It takes effect when the key is read.
func (r Ref[K, V]) Get() (value V, ok bool) {
	if a := r.anchor; a != nil {
		if c := a.cell.Load(); c != nil {
			// LP(Get): the record is read.
			rec := c.rec.Load()
			if rec.word&(datedBit|deadBit) == 0 {
				return rec.value, true
			}
		}
	}
	// LP(Get), otherwise: find reads the record, or finds none.
	if _, rec := r.find(); rec != nil {
		return rec.value, true
	}
	return value, false
}

// Lookup is [Registry.Lookup] of the key.
//
// Lookup is wait-free. It takes effect when the key is read.
func (r Ref[K, V]) Lookup() (entry Entry[K, V], ok bool) {
	// LP(Lookup): find reads the record, or finds none.
	if c, rec := r.find(); rec != nil {
		return rec.entry(c.key), true
	}
	return entry, false
}

// Peek is [Registry.Peek] of the key.
//
// Peek is wait-free. It takes effect when the key is read.
func (r Ref[K, V]) Peek() *V {
	// LP(Peek): find reads the record, or finds none.
	if _, rec := r.find(); rec != nil {
		return &rec.value
	}
	return nil
}

// find returns the cell of the key and its live record, or nil and nil.
//
// A remembered cell that is alive is the one in the table, because cells leave it dead. One
// that is dead may have died long ago and says nothing about now, so that the table is
// asked. What is remembered then is a hint: a slow goroutine may store an older cell than
// others have found since. That cell is dead or nil, and the next reader finds that out.
func (r Ref[K, V]) find() (*cell[K, V], *record[K, V]) {
	a := r.anchor
	if a == nil {
		return nil, nil
	}
	last := a.cell.Load()
	if last != nil {
		if rec := a.root.live(last.rec.Load()); rec != nil {
			return last, rec
		}
	}
	c, rec := a.root.loadLive(a.key)
	if c != last {
		a.cell.Store(c)
	}
	return c, rec
}
