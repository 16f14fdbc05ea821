package shardedregistry

import "iter"

// DeleteMatching is [Registry.DeleteMatching] within the namespace. It looks at
// the keys of all namespaces, and asks match about its own.
//
// DeleteMatching is blocking on the mutex of one hash bucket at a time; with
// indexes, TTL or a stream, and where it helps a transaction, it may block on
// more, see [Config]. It takes effect, for each key, when the key's last record
// is stored, or, if it stays, when what match was given was read.
func (v View[K, V]) DeleteMatching(match func(Entry[K, V]) bool) int {
	if match == nil {
		panic("shardedregistry: DeleteMatching called with a nil function")
	}
	rt := v.registry.root.Load()
	if rt == nil {
		return 0
	}
	deleted, _ := rt.killMatching(v.has, func(k hkey[Scoped[K]], rec *record) (bool, error) {
		return match(v.entry(entryOf[V](rt, k, rec))), nil
	})
	return deleted
}

// DeleteFunc is [Registry.DeleteFunc] within the namespace. It looks at the keys
// of all namespaces, and asks match about its own.
//
// DeleteFunc is blocking on the mutex of one hash bucket at a time; with
// indexes, TTL or a stream, and where it helps a transaction, it may block on
// more, see [Config]. It takes effect, for each key, when the key's last record
// is stored, or, if it stays, when what match was given was read.
func (v View[K, V]) DeleteFunc(match func(Entry[K, V]) (bool, error)) (deleted int, err error) {
	if match == nil {
		panic("shardedregistry: DeleteFunc called with a nil function")
	}
	rt := v.registry.root.Load()
	if rt == nil {
		return 0, nil
	}
	return rt.killMatching(v.has, func(k hkey[Scoped[K]], rec *record) (bool, error) {
		return match(v.entry(entryOf[V](rt, k, rec)))
	})
}

// All is [Registry.All] within the namespace. The loop looks at the keys of all
// namespaces.
//
// All is wait-free; the loop is blocking on the mutex of one hash bucket at a
// time. It takes effect, for each key, when that key's record is read.
func (v View[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := range v.Entries() {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// Entries is [Registry.Entries] within the namespace. The loop looks at the keys
// of all namespaces.
//
// Entries is wait-free; the loop is blocking on the mutex of one hash bucket at
// a time. It takes effect, for each key, when that key's record is read.
func (v View[K, V]) Entries() iter.Seq[Entry[K, V]] {
	return func(yield func(Entry[K, V]) bool) {
		v.visit(func(rt *root[Scoped[K]], k hkey[Scoped[K]], rec *record) bool {
			return yield(v.entry(entryOf[V](rt, k, rec)))
		})
	}
}

// visit calls f for the keys of the namespace that are present, until it returns
// false.
func (v View[K, V]) visit(f func(rt *root[Scoped[K]], k hkey[Scoped[K]], rec *record) bool) {
	if rt := v.registry.root.Load(); rt != nil {
		rt.visit(func(k hkey[Scoped[K]], _ *cell[Scoped[K]], rec *record) bool {
			return !v.has(k) || f(rt, k, rec)
		})
	}
}

// Len returns the number of keys in the namespace. There is no counter for a
// namespace, so Len loops over all keys of the registry, and is as exact as
// such a loop: it counts every key that is present throughout, and may count a
// key that comes or goes meanwhile.
//
// Len is blocking on the mutex of one hash bucket at a time. It takes effect,
// for each key, when that key's record is read.
func (v View[K, V]) Len() (n int) {
	v.visit(func(*root[Scoped[K]], hkey[Scoped[K]], *record) bool {
		// LP(Len), of a View: the record was read.
		n++
		return true
	})
	return n
}

// Snapshot is [Registry.Snapshot] of the namespace. It looks at the keys of all
// namespaces; the snapshot that it returns keeps nothing of the others.
//
// Snapshot is blocking on the mutex of one hash bucket at a time. It takes
// effect when its cut is made: see DESIGN.md.
func (v View[K, V]) Snapshot() *Snapshot[K, V] {
	whole := v.registry.Snapshot()
	whole.keep(func(k Scoped[K]) bool { return v.has(hkey[Scoped[K]]{Key: k}) })
	return v.snapshot(whole)
}

// snapshot returns whole, all keys of which belong to the namespace, without their
// Space.
func (v View[K, V]) snapshot(whole *Snapshot[Scoped[K], V]) *Snapshot[K, V] {
	s := &Snapshot[K, V]{clone: whole.clone, revision: whole.revision}
	within(&s.contents, v.space, &whole.contents)
	return s
}

// within makes p what whole is, all keys of which belong to the namespace space,
// without their Space.
func within[K comparable](p *contents[K], space string, whole *contents[Scoped[K]]) {
	p.codec, p.records = keyCodecIn(space, whole.codec), whole.records
	p.keys = make([]K, len(whole.keys))
	for i, k := range whole.keys {
		p.keys[i] = k.Key
	}
}

// ByIndex is [Registry.ByIndex] within the namespace. The loop looks at the keys
// of all namespaces that have the value.
//
// ByIndex is wait-free, and so is the loop. It takes effect, for each key, when
// that key's record is read, or, for a key that it skips, when the loop begins
// or the record is read.
func (v View[K, V]) ByIndex(index, value string) iter.Seq[Entry[K, V]] {
	rt, cs, number := indexed(&v.registry.core, "ByIndex", index)
	found := query[Scoped[K]]{rt, cs, cs.indexKey(number, value), v.has}
	return func(yield func(Entry[K, V]) bool) {
		found.each(func(k hkey[Scoped[K]], rec *record) bool { return yield(v.entry(entryOf[V](rt, k, rec))) })
	}
}

// LookupBy is [Registry.LookupBy] within the namespace. The values of a unique
// index are unique in the whole registry. So LookupBy does not find a value
// that a key of another namespace has, and yet no key of this one can gain it.
//
// LookupBy is wait-free. It takes effect when the key's record is read, or, if
// there is none, when the index is read or the last key has lost the value.
func (v View[K, V]) LookupBy(index, value string) (entry Entry[K, V], ok bool) {
	if rt, k, rec := holderOf(&v.registry.core, index, value, v.has); rec != nil {
		return v.entry(entryOf[V](rt, k, rec)), true
	}
	return entry, false
}

// IndexValues is [Registry.IndexValues] within the namespace: it yields the
// values that keys of the namespace have. The loop looks at the values of all
// namespaces.
//
// IndexValues is wait-free; the loop is blocking on the mutex of one hash
// bucket at a time. It takes effect, for each value, when a record that has it
// is read.
func (v View[K, V]) IndexValues(index string) iter.Seq[string] {
	return indexValues(&v.registry.core, index, v.has)
}
