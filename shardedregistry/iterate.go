package shardedregistry

import "iter"

// All returns an iterator over the keys, as they are stored, and their values,
// in no particular order.
//
// A loop does not see one moment of the registry. It yields each key at most
// once, with the value that the key holds when it is yielded. It yields every
// key that is present throughout; a key that comes or goes meanwhile may be
// yielded or not. Its body runs outside every lock and may use the registry.
//
// All is wait-free; the loop is blocking on the mutex of one hash bucket at a
// time. It takes effect, for each key, when that key's record is read.
func (r *Registry[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := range r.Entries() {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// Entries is All with versions: it returns an iterator over what the keys hold.
//
// Entries is wait-free; the loop is blocking on the mutex of one hash bucket at
// a time. It takes effect, for each key, when that key's record is read.
func (r *Registry[K, V]) Entries() iter.Seq[Entry[K, V]] { return r.each }

// Keys is All without values: it returns an iterator over the keys.
//
// Keys is wait-free; the loop is blocking on the mutex of one hash bucket at a
// time. It takes effect, for each key, when that key's record is read.
func (r *Registry[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		if rt := r.root.Load(); rt != nil {
			// LP(Keys): visit has read the record.
			rt.visit(func(k hkey[K], _ *cell[K, V], _ *record[K, V]) bool { return yield(k.Key) })
		}
	}
}

// each is not a function literal in Entries, because the compiler would not
// make an instruction of an atomic load there.
func (r *Registry[K, V]) each(yield func(Entry[K, V]) bool) {
	if rt := r.root.Load(); rt != nil {
		rt.visit(func(k hkey[K], _ *cell[K, V], rec *record[K, V]) bool { return yield(rec.entry(k.Key)) })
	}
}

// visit calls f for the keys that are present, with their cells and records,
// until it returns false.
func (rt *root[K, V]) visit(f func(k hkey[K], c *cell[K, V], rec *record[K, V]) bool) {
	for c := range rt.cells.All() {
		// LP(All): the record is read.
		// LP(Entries): the record is read.
		rec := rt.live(c.rec.Load())
		if rec != nil && !f(rt.rehashed(c.key), c, rec) {
			return
		}
	}
}
