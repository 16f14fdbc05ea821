package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// Ref is a handle to one key of a [Registry], present or not. Its methods are
// those of the registry for that key, and differ in their cost. The key is
// normalised and hashed once, when the Ref is made, and the Ref remembers where
// the key is as long as it stays present. To read a key through a Ref takes two
// loads. A Ref to a string takes 80 bytes.
//
// A Ref is not bound to one life of its key. When the key is deleted, the Ref
// finds it absent; when it is created again, present. Refs may be copied, kept
// and used by any number of goroutines; copies share what they remember.
//
// A Ref keeps its registry alive with all that is in it, and its key as it was
// given. If its key was deleted, it keeps a record without a value until it or
// a copy is next used. If the key was deleted and created again while a
// snapshot was being taken, it also keeps the values before that which that needed.
//
// A Ref of an invalid key, and the zero Ref, find their key absent, and return
// [ErrInvalidKey] where an error is returned.
type Ref[K comparable, V any] struct {
	anchor *anchor[K, V] // nil in the zero Ref
}

// anchor is what the copies of a Ref share.
type anchor[K comparable, V any] struct{ hold[K] }

// hold is all of an anchor. It is immutable but for cell.
type hold[K comparable] struct {
	// cell is nil, or a cell that was found for the key, dead or alive. Readers
	// and writers replace one that they find dead by what the table holds.
	cell atomics.Pointer[cell[K]]

	target target[K] // whose last is &cell
	bad    *error    // why the key is invalid, or nil
}

// Ref returns a handle to key, which need not be present or valid: see [Ref].
//
// Ref is wait-free. It takes effect at any moment: it reads and changes nothing
// of key.
func (r *further[K, V]) Ref(key K) Ref[K, V] {
	a := new(anchor[K, V])
	a.init(r.locate(key))
	return Ref[K, V]{a}
}

func (h *hold[K]) init(t target[K], err error) {
	h.target = t
	h.target.last = &h.cell
	if err != nil {
		bad := err
		h.bad = &bad
	}
}

// locate returns the place of the key, or an error that matches ErrInvalidKey.
func (r Ref[K, V]) locate() (*target[K], error) {
	if r.anchor == nil {
		return nil, ErrInvalidKey
	}
	return r.anchor.locate()
}

func (h *hold[K]) locate() (*target[K], error) {
	if h.bad != nil {
		return nil, *h.bad
	}
	return &h.target, nil
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
			if rec.word&(datedBit|deadBit) == 0 && a.target.root.open {
				return *valueOf[V](rec), true
			}
		}
	}
	// LP(Get), otherwise: find reads the record, or finds none.
	if rt, k, rec := r.find(); rec != nil {
		return out[V](rt, k, rec), true
	}
	return value, false
}

// Lookup is [Registry.Lookup] of the key.
//
// Lookup is wait-free. It takes effect when the key's record is read, or, if the
// key is absent, when the table is read or the key's last record was stored.
func (r Ref[K, V]) Lookup() (entry Entry[K, V], ok bool) {
	// LP(Lookup): find reads the record, or finds none.
	if rt, k, rec := r.find(); rec != nil {
		return entryOf[V](rt, k, rec), true
	}
	return entry, false
}

// find returns the key as it is stored and its live record, or nil.
func (r Ref[K, V]) find() (rt *root[K], k hkey[K], rec *record) {
	t, err := r.locate()
	if err != nil {
		return rt, k, nil
	}
	c, rec := t.loadLive()
	if c != nil {
		k = c.named(t.key.Hash)
	}
	return t.root, k, rec
}

// Create is [Registry.Create] of the key. An [*ExistsError] names the key as
// the Ref was given it.
//
// Create is wait-free if it finds the key present, and otherwise blocking on
// the mutex of a hash bucket; with indexes or TTL, and where it helps
// a transaction, it may block on more, see [Config]. It takes effect when the
// table stores the new entry, or, if the key is present, when its record is
// read, or, if a unique value is taken, when the record that has it is read.
func (r Ref[K, V]) Create(value V) (Version, error) {
	t, err := r.locate()
	if err != nil {
		return 0, err
	}
	return insert(t, value).result()
}

// GetOrCreate is [Registry.GetOrCreate] of the key.
//
// GetOrCreate is wait-free if it finds the key present, and otherwise blocking
// on the mutex of a hash bucket; with indexes or TTL, and where it
// helps a transaction, it may block on more, see [Config]. It takes effect when
// the table stores the new entry, or, if it creates none, when what it found
// was read.
func (r Ref[K, V]) GetOrCreate(fn func() (V, error)) (value V, created bool, err error) {
	if fn == nil {
		panic("shardedregistry: GetOrCreate called with a nil function")
	}
	t, err := r.locate()
	if err != nil {
		return value, false, err
	}
	return getOrCreate(t, fn)
}

// Update is [Registry.Update] of the key.
//
// Update is lock-free; with indexes or TTL, and where it helps a
// transaction, it may block, see [Config]. It takes effect when the new record is
// stored, or, if it stores none, when what it found was read.
func (r Ref[K, V]) Update(fn func(V) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Update called with a nil function")
	}
	failed := 0
	if r.anchor != nil {
		if rt, c, hash, old := r.anchor.replaceable(); old != nil {
			value, err := fn(*valueOf[V](old))
			if err != nil {
				return Entry[K, V]{}, err
			}
			next := &boxed[record, V]{record{word: old.changed()}, value}
			// LP(Update): replace stores the new record.
			if rt.replace(c, hash, old, &next.head) {
				return Entry[K, V]{c.key, value, next.head.version()}, nil
			}
			failed++
		}
	}
	t, err := r.locate()
	if err != nil {
		return Entry[K, V]{}, err
	}
	return update(t, failed, fn)
}

// UpdateIf is [Registry.UpdateIf] of the key.
//
// UpdateIf is wait-free, but lock-free while others watch or wait and beside
// transactions; with indexes or TTL, and where it helps a transaction,
// it may block, see [Config]. It takes effect when the new record is stored, or,
// if it stores none, when what it found was read.
func (r Ref[K, V]) UpdateIf(version Version, value V) (Version, error) {
	t, err := r.locate()
	if err != nil {
		return 0, err
	}
	return updateIf(t, version, value)
}

// Put is [Registry.Put] of the key.
//
// Put is lock-free if the key is present, and otherwise blocking on the mutex
// of a hash bucket; with indexes or TTL, and where it helps a
// transaction, it may block in both cases, see [Config]. It takes effect when
// the new record or entry is stored, or, if it stores none, when what it found
// was read.
func (r Ref[K, V]) Put(value V) (Version, error) {
	failed := 0
	if r.anchor != nil {
		if rt, c, hash, old := r.anchor.replaceable(); old != nil {
			// LP(Put): store stores the new record.
			if version, ok := store(rt, c, hash, old, value); ok {
				return version, nil
			}
			failed++
		}
	}
	t, err := r.locate()
	if err != nil {
		return 0, err
	}
	return put(t, failed, value)
}

// Upsert is [Registry.Upsert] of the key.
//
// Upsert is lock-free if the key is present, and otherwise blocking on the
// mutex of a hash bucket; with indexes or TTL, and where it helps a
// transaction, it may block in both cases, see [Config]. It takes effect when
// the new record or entry is stored, or, if it stores none, when what it found
// was read.
func (r Ref[K, V]) Upsert(fn func(old V, exists bool) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Upsert called with a nil function")
	}
	t, err := r.locate()
	if err != nil {
		return Entry[K, V]{}, err
	}
	return upsert(t, fn)
}

// Delete is [Registry.Delete] of the key.
//
// Delete is lock-free until others see the key absent, and then blocking on the
// mutex of a hash bucket to free the entry; with indexes or TTL, and
// where it helps a transaction, it may block on more, see [Config]; if the key
// is absent, and no transaction is about to create it, it is wait-free. It
// takes effect when the key's last record is stored, or, if the key is absent,
// when the table is read or its last record was stored.
func (r Ref[K, V]) Delete() (Entry[K, V], bool) {
	t, err := r.locate()
	if err != nil {
		return Entry[K, V]{}, false
	}
	return remove[V](t)
}

// DeleteIf is [Registry.DeleteIf] of the key.
//
// DeleteIf is wait-free, but lock-free beside transactions, until others see
// the key absent, and then blocking on the mutex of a hash bucket to free the
// entry; with indexes or TTL, and where it helps a transaction, it
// may block on more, see [Config]. It takes effect when the key's last record
// is stored, or, if it deletes nothing, when what it found was read.
func (r Ref[K, V]) DeleteIf(version Version) error {
	t, err := r.locate()
	if err != nil {
		return err
	}
	return t.removeIf(version)
}

// replaceable begins the fast path of a Ref, as that of core does of a key.
func (h *hold[K]) replaceable() (rt *root[K], c *cell[K], hash uint64, old *record) {
	rt = h.target.root
	if h.bad != nil || !rt.light || rt.snapshotting() {
		return rt, nil, 0, nil
	}
	c, old = h.target.loadLive()
	return rt, c, h.target.key.Hash, old
}
