package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// Ref is a handle that reads one key of a [Registry], present or not. The key
// is normalised and hashed once, when the Ref is made, and the Ref remembers
// where the key is as long as it stays present. To read a key through a Ref
// takes two loads. A Ref to a string takes 48 bytes.
//
// A Ref is not bound to one life of its key. When the key is deleted, the Ref
// finds it absent; when it is created again, present. Refs may be copied, kept
// and used by any number of goroutines; copies share what they remember.
//
// A Ref keeps its registry alive with all that is in it, and its key. If that was
// deleted, it keeps the last value until it or a copy is next used.
// If the key was deleted and created again while a snapshot was being taken, it
// also keeps the values before that which that needed.
//
// A Ref of an invalid key, and the zero Ref, find their key absent.
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

// Ref returns a handle to key, which need not be present or valid: see [Ref].
//
// Ref is wait-free. It takes effect at any moment: it reads and changes nothing
// of key.
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
// Get is wait-free. It takes effect when the key's record is read, or, if the
// key is absent, when the table is read or the key's last record was stored.
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
// Lookup is wait-free. It takes effect when the key's record is read, or, if the
// key is absent, when the table is read or the key's last record was stored.
func (r Ref[K, V]) Lookup() (entry Entry[K, V], ok bool) {
	// LP(Lookup): find reads the record, or finds none.
	if c, rec := r.find(); rec != nil {
		return rec.entry(c.key), true
	}
	return entry, false
}

// Peek is [Registry.Peek] of the key.
//
// Peek is wait-free. It takes effect when the key's record is read, or, if the
// key is absent, when the table is read or the key's last record was stored.
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
