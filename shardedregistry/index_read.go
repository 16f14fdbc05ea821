package shardedregistry

import (
	"fmt"
	"iter"
	"slices"
)

// ByIndex returns an iterator over the entries of the keys that have value in
// an index: those for whose entity the index's function returns it.
//
// A loop does not see one moment of the registry. It yields each key at most
// once, with an entry that the key holds when it is yielded and that has the
// value. It yields every key that has the value throughout; a key that gains or
// loses it meanwhile may be yielded or not. Its body runs outside every lock
// and may use the registry.
//
// ByIndex panics if the registry has no index of that name.
//
// ByIndex is wait-free, and so is the loop. It takes effect, for each key, when
// that key's record is read, or, for a key that it skips, when the loop begins
// or the record is read.
func (r *Registry[K, V]) ByIndex(index, value string) iter.Seq[Entry[K, V]] {
	rt, cs, number := r.indexed("ByIndex", index)
	found := query[K, V]{rt, cs, cs.indexKey(number, value)}
	return func(yield func(Entry[K, V]) bool) {
		found.each(func(k hkey[K], rec *record[K, V]) bool { return yield(rec.entry(k.Key)) })
	}
}

// LookupBy returns the entry of the key that has value in a unique index, and
// whether there is one.
//
// LookupBy panics if the registry has no unique index of that name.
//
// LookupBy is wait-free. It takes effect when the key's record is read, or, if
// there is none, when the index is read or the last key has lost the value.
func (r *Registry[K, V]) LookupBy(index, value string) (entry Entry[K, V], ok bool) {
	rt, cs, number := r.indexed("LookupBy", index)
	if !cs.indexes[number].unique {
		panic(fmt.Sprintf("shardedregistry: LookupBy of the index %q, which is not unique", index))
	}
	query[K, V]{rt, cs, cs.indexKey(number, value)}.each(func(k hkey[K], rec *record[K, V]) bool {
		entry, ok = rec.entry(k.Key), true
		return false
	})
	return entry, ok
}

// IndexValues returns an iterator over the values of an index, in no particular
// order.
//
// A loop does not see one moment of the registry. It yields each value at most
// once. It yields every value that some key has throughout, and no value that
// no key has had meanwhile. Its body runs outside every lock and may use the
// registry.
//
// IndexValues panics if the registry has no index of that name.
//
// IndexValues is wait-free; the loop is blocking on the mutex of one hash
// bucket at a time. It takes effect, for each value, when a record that has it
// is read.
func (r *Registry[K, V]) IndexValues(index string) iter.Seq[string] {
	rt, cs, number := r.indexed("IndexValues", index)
	return func(yield func(string) bool) {
		for value := range cs.indexes[number].lists.All() {
			had := false
			// LP(IndexValues): a record is read.
			query[K, V]{rt, cs, indexKey{number, value}}.each(func(hkey[K], *record[K, V]) bool { had = true; return false })
			if had && !yield(value.Key) {
				return
			}
		}
	}
}

// indexed returns the root, its constraints and the number of an index, for a method.
func (r *Registry[K, V]) indexed(method, index string) (*root[K, V], *constraints[K, V], int) {
	if rt := r.root.Load(); rt != nil {
		cs := rt.constraints
		if i := cs.number(index); i >= 0 {
			return rt, cs, i
		}
	}
	panic(fmt.Sprintf("shardedregistry: %s of the index %q, which is not in Config", method, index))
}

// query asks for the keys that have an index key.
type query[K comparable, V any] struct {
	root        *root[K, V]
	constraints *constraints[K, V]
	key         indexKey
}

// each yields the keys that have the index key, with their records.
//
// The keys that were pinned when it began include all that had it then. The record
// shows whether a key has lost it since.
func (q query[K, V]) each(yield func(hkey[K], *record[K, V]) bool) {
	// LP(ByIndex), a key that is not yielded: the keys are read.
	// LP(LookupBy), none: likewise, or when the last key lost the value.
	keys := q.constraints.indexes[q.key.index].on(q.key.value)
	keys.all(func(one posting[K]) bool {
		// LP(ByIndex): the record is read.
		// LP(LookupBy): the record is read.
		c, rec := q.root.loadLive(one.key)
		if !slices.Contains(rec.indexKeys(), q.key) {
			return true
		}
		return yield(c.named(one.key.Hash), rec)
	})
}
