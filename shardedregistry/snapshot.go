package shardedregistry

import (
	"iter"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Snapshot is what all keys of a [Registry] held at one instant. It never
// changes, many goroutines may use it, and it needs no closing: its memory
// returns when nothing refers to it. It keeps the values that it contains, with
// the index values and the deadline of each, and nothing else of the registry. The
// zero Snapshot is empty.
type Snapshot[K comparable, V any] struct {
	contents[K, V]
	revision Revision // see Revision
}

// contents is all of a snapshot but its revision.
type contents[K comparable, V any] struct {
	codec   keyCodec[K]
	keys    []K
	records []*record[K, V] // of the keys: live and plain
	last    Version         // see Last

	// table is of keys, and nil until somebody looks for one. Everybody reads.
	table atomics.Pointer[keyTable]
}

// Snapshot returns what all keys hold at one instant during the call. Of the
// changes that others make meanwhile, it contains those that take effect before
// that instant and no others. It looks at every entity three times or a few
// more.
//
// Creations and deletions may wait for Snapshot, for the mutex of one hash
// bucket at a time, as for a loop over All. Nothing else waits for it. While it
// is being taken, each change costs two more compare-and-swaps, both of its own
// new record, and 16 bytes, and takes effect a moment after its record is
// stored. What a key held at the instant is kept until the call returns.
//
// Snapshot is blocking on the mutex of one hash bucket at a time. It takes
// effect when its cut is made: see DESIGN.md.
func (r *Registry[K, V]) Snapshot() *Snapshot[K, V] {
	rt := r.root.Load()
	if rt == nil {
		return new(Snapshot[K, V]) // LP(Snapshot), never used: the root is read
	}
	return snapshot(rt)
}

// snapshot runs Snapshot.
func snapshot[K comparable, V any](rt *root[K, V]) *Snapshot[K, V] {
	s := new(Snapshot[K, V])
	if rt.history != nil {
		s.revision = rt.history.revision() // before the cut
	}
	take(rt, &s.contents)
	return s
}

// Revision returns a revision up to which the snapshot contains all changes, or
// what followed them, for [Registry.WatchFrom]. It may contain some that came
// later, too. It is 0 if the registry is without Config.History.
func (s *Snapshot[K, V]) Revision() Revision { return s.revision }

// Last returns a version that is at least that of each change that the snapshot
// contains, deletions included: see [Restore].
func (s *Snapshot[K, V]) Last() Version { return s.last }

// keep makes c what it has of the keys that only accepts.
func (c *contents[K, V]) keep(only func(K) bool) {
	whole, records := c.keys, c.records
	c.keys, c.records = nil, nil
	for i, k := range whole {
		if only(k) {
			c.keys, c.records = append(c.keys, k), append(c.records, records[i])
		}
	}
}

// Get returns the value of key, and whether key is in the snapshot. Key is
// normalised as in the registry.
//
// The first call of Get or Lookup makes an index of the keys, in time and
// memory in proportion to their number.
func (s *Snapshot[K, V]) Get(key K) (value V, ok bool) {
	if _, rec := s.find(key); rec != nil {
		return rec.value, true
	}
	return value, false
}

// Lookup returns what key held, with its version, and whether key is in the
// snapshot.
func (s *Snapshot[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	if k, rec := s.find(key); rec != nil {
		return rec.entry(k.Key), true
	}
	return entry, false
}

// find returns key as it is stored and its record, or nil.
func (c *contents[K, V]) find(key K) (k hkey[K], rec *record[K, V]) {
	if len(c.records) == 0 {
		return k, nil
	}
	k, err := c.codec.hashed(key)
	if err != nil {
		return k, nil
	}
	x := c.table.Load()
	if x == nil {
		made := keyTableOf(c.keys, c.codec.hash)
		x = c.table.Install(&made)
	}
	if i := (*x)[slotOf(*x, c.keys, k)]; i != 0 {
		return hkey[K]{Hash: k.Hash, Key: c.keys[i-1]}, c.records[i-1]
	}
	return k, nil
}

// Len returns the number of keys.
func (s *Snapshot[K, V]) Len() int { return len(s.records) }

// All returns an iterator over the keys, as they are stored, and their values,
// in no particular order.
func (s *Snapshot[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i, rec := range s.records {
			if !yield(s.keys[i], rec.value) {
				return
			}
		}
	}
}

// Keys is All without values: it returns an iterator over the keys.
func (s *Snapshot[K, V]) Keys() iter.Seq[K] { return slices.Values(s.keys[:len(s.records)]) }

// Entries is All with versions: it returns an iterator over what the keys held.
func (s *Snapshot[K, V]) Entries() iter.Seq[Entry[K, V]] {
	return func(yield func(Entry[K, V]) bool) {
		for i, rec := range s.records {
			if !yield(rec.entry(s.keys[i])) {
				return
			}
		}
	}
}
