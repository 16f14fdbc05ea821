package shardedregistry

import (
	"iter"
)

// View is the part of a [Registry] whose keys belong to one namespace. Its
// methods are those of the registry, for keys without their Space. It has no
// state: views may be made when they are needed, copied, and used by any number
// of goroutines. What is done through one is seen through all others of the
// same namespace and in the registry.
//
// Config.Normalize of the registry is given the whole key, once for each
// operation. It must leave Space as it is: a key that it moves to another
// namespace is invalid in a View. Config.Check, indexes and Config.TTL are given
// whole keys.
//
// A View yields and finds the keys of its namespace, and tells loops of their
// changes alone. Its errors show keys without their Space, and no keys of other
// namespaces.
//
// A View does not hide how much others do. The first version of a key may tell
// how often keys were deleted in the registry, and a change takes longer while
// there is a loop over any View.
//
// A View must be made by [Namespace].
type View[K comparable, V any] struct {
	registry *Registry[Scoped[K], V]
	space    string
}

// Namespace returns the view of the keys of r whose Space is space.
//
// Namespace is wait-free. It takes effect at any moment: it reads and changes
// nothing.
func Namespace[K comparable, V any](r *Registry[Scoped[K], V], space string) View[K, V] {
	return View[K, V]{r, space}
}

// errSpace is the error of a key that Normalize has moved.
var errSpace error = &invalidKeyError{reason: "Config.Normalize changes its Space"}

// scoped returns key as it is in the registry, before it is normalised.
func (v View[K, V]) scoped(key K) Scoped[K] { return Scoped[K]{v.space, key} }

// locate returns the place of key, or an error that matches ErrInvalidKey.
func (v View[K, V]) locate(key K) (target[Scoped[K]], error) {
	t, err := v.registry.locate(v.scoped(key))
	t.unscoped = true
	if err == nil && !v.has(t.key) {
		err = errSpace
	}
	return t, err
}

// has reports whether k belongs to the namespace.
func (v View[K, V]) has(k hkey[Scoped[K]]) bool { return k.Key.Space == v.space }

// entry returns e without its Space.
func (v View[K, V]) entry(e Entry[Scoped[K], V]) Entry[K, V] {
	return Entry[K, V]{e.Key.Key, e.Value, e.Version}
}

// Get is [Registry.Get] within the namespace.
//
// Get is wait-free. It takes effect when the key's record is read, or, if key
// is absent, when the table is read or the key's last record was stored.
func (v View[K, V]) Get(key K) (value V, ok bool) {
	// LP(Get): find reads the record, or finds none.
	if rt, k, rec := v.registry.find(v.scoped(key)); rec != nil && v.has(k) {
		return out[V](rt, k, rec), true
	}
	return value, false
}

// Lookup is [Registry.Lookup] within the namespace.
//
// Lookup is wait-free. It takes effect when the key's record is read, or, if
// key is absent, when the table is read or the key's last record was stored.
func (v View[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	// LP(Lookup): find reads the record, or finds none.
	if rt, k, rec := v.registry.find(v.scoped(key)); rec != nil && v.has(k) {
		return v.entry(entryOf[V](rt, k, rec)), true
	}
	return entry, false
}

// Create is [Registry.Create] within the namespace.
//
// Create is wait-free if it finds key present, and otherwise blocking on the
// mutex of a hash bucket; with indexes, TTL or a stream, and where it helps a
// transaction, it may block on more, see [Config]. It takes effect when the
// table stores the new entry, or, if key is present, when its record is read,
// or, if a unique value is taken, when the record that has it is read.
func (v View[K, V]) Create(key K, value V) (Version, error) {
	t, err := v.locate(key)
	if err != nil {
		return 0, err
	}
	return insert(&t, value).result()
}

// CreateMany is [Registry.CreateMany] within the namespace.
//
// CreateMany is blocking on the mutex of one hash bucket at a time; with
// indexes, TTL or a stream, and where it helps a transaction, it may block on
// more, see [Config]. It takes effect, for each key, when the table stores the
// new entry, or, if the key is present, when its record is read, or, if a
// unique value is taken, when the record that has it is read.
func (v View[K, V]) CreateMany(entries iter.Seq2[K, V]) (created int, err error) {
	return createMany(v.locate, entries)
}

// GetOrCreate is [Registry.GetOrCreate] within the namespace.
//
// GetOrCreate is wait-free if it finds key present, and otherwise blocking on
// the mutex of a hash bucket; with indexes, TTL or a stream, and where it helps
// a transaction, it may block on more, see [Config]. It takes effect when the
// table stores the new entry, or, if it creates none, when what it found was
// read.
func (v View[K, V]) GetOrCreate(key K, fn func() (V, error)) (value V, created bool, err error) {
	if fn == nil {
		panic("shardedregistry: GetOrCreate called with a nil function")
	}
	t, err := v.locate(key)
	if err != nil {
		return value, false, err
	}
	return getOrCreate(&t, fn)
}

// Update is [Registry.Update] within the namespace.
//
// Update is lock-free; with indexes, TTL or a stream, and where it helps a
// transaction, it may block, see [Config]. It takes effect when the new record is
// stored, or, if it stores none, when what it found was read.
func (v View[K, V]) Update(key K, fn func(V) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Update called with a nil function")
	}
	t, err := v.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	e, err := update(&t, 0, fn)
	return v.entry(e), err
}

// UpdateIf is [Registry.UpdateIf] within the namespace.
//
// UpdateIf is wait-free, but lock-free while others watch or wait and beside
// transactions; with indexes, TTL or a stream, and where it helps a transaction,
// it may block, see [Config]. It takes effect when the new record is stored, or,
// if it stores none, when what it found was read.
func (v View[K, V]) UpdateIf(key K, version Version, value V) (Version, error) {
	t, err := v.locate(key)
	if err != nil {
		return 0, err
	}
	return updateIf(&t, version, value)
}

// Put is [Registry.Put] within the namespace.
//
// Put is lock-free if key is present, and otherwise blocking on the mutex of a
// hash bucket; with indexes, TTL or a stream, and where it helps a transaction,
// it may block in both cases, see [Config]. It takes effect when the new record
// or entry is stored, or, if it stores none, when what it found was read.
func (v View[K, V]) Put(key K, value V) (Version, error) {
	t, err := v.locate(key)
	if err != nil {
		return 0, err
	}
	return put(&t, 0, value)
}

// Upsert is [Registry.Upsert] within the namespace.
//
// Upsert is lock-free if key is present, and otherwise blocking on the mutex of
// a hash bucket; with indexes, TTL or a stream, and where it helps a
// transaction, it may block in both cases, see [Config]. It takes effect when
// the new record or entry is stored, or, if it stores none, when what it found
// was read.
func (v View[K, V]) Upsert(key K, fn func(old V, exists bool) (V, error)) (Entry[K, V], error) {
	if fn == nil {
		panic("shardedregistry: Upsert called with a nil function")
	}
	t, err := v.locate(key)
	if err != nil {
		return Entry[K, V]{}, err
	}
	e, err := upsert(&t, fn)
	return v.entry(e), err
}

// Delete is [Registry.Delete] within the namespace.
//
// Delete is lock-free until others see key absent, and then blocking on the
// mutex of a hash bucket to free the entry; with indexes, TTL or a stream, and
// where it helps a transaction, it may block on more, see [Config]; if key is
// absent, and no transaction is about to create it, it is wait-free. It takes
// effect when the key's last record is stored, or, if key is absent, when the
// table is read or its last record was stored.
func (v View[K, V]) Delete(key K) (Entry[K, V], bool) {
	t, err := v.locate(key)
	if err != nil {
		return Entry[K, V]{}, false
	}
	e, ok := remove[V](&t)
	return v.entry(e), ok
}

// DeleteIf is [Registry.DeleteIf] within the namespace.
//
// DeleteIf is wait-free, but lock-free beside transactions, until others see
// key absent, and then blocking on the mutex of a hash bucket to free the
// entry; with indexes, TTL or a stream, and where it helps a transaction, it
// may block on more, see [Config]. It takes effect when the key's last record
// is stored, or, if it deletes nothing, when what it found was read.
func (v View[K, V]) DeleteIf(key K, version Version) error {
	t, err := v.locate(key)
	if err != nil {
		return err
	}
	return t.removeIf(version)
}

// Ref is [Registry.Ref] of key within the namespace. Its entries show the whole
// key. Its errors, like all errors of a View, show the key without its Space.
//
// Ref is wait-free. It takes effect at any moment: it reads and changes nothing
// of key.
func (v View[K, V]) Ref(key K) Ref[Scoped[K], V] {
	a := new(anchor[Scoped[K], V])
	a.init(v.locate(key))
	return Ref[Scoped[K], V]{a}
}
