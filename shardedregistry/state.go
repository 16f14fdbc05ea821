package shardedregistry

import (
	"math/bits"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// hkey is a normalised key with its hash, so that a key is hashed once for
// the choice of its shard and for the table. Comparing the hash first spares
// most comparisons of keys that differ.
type hkey[K comparable] struct {
	hash uint64
	key  K
}

// record is what a key holds at one version. It is immutable once published,
// published at most once, and never reused, so equal pointers mean that
// nothing changed in between. It has a size whatever V is: pointers to things
// without one may be equal by accident.
type record[V any] struct {
	version Version
	dead    bool // deleted; the last record of its cell
	value   V
}

// cell is one life of one key, from its creation to its deletion. A key that
// is created again gets another cell.
type cell[K comparable, V any] struct {
	// rec is never nil once the cell is in a table. Writers of the key replace
	// a live record by CAS; a dead one is final. Everybody reads.
	rec atomics.Pointer[record[V]]

	// spelled is the key as it was given to the call that created the cell.
	// Written before the cell is published.
	spelled K

	// The rest of 64 bytes for keys of up to 16, which the allocator aligns,
	// so that an update disturbs the readers of its own key only.
	_ [40]byte
}

// shard is an independent part of the registry. A key belongs to the shard
// that the top bits of its hash name; the table uses the low ones.
type shard[K comparable, V any] struct {
	// table is nil until the shard's first key is created; then a creator
	// installs it by CAS and it stays. Everybody reads.
	table atomics.Pointer[table.Table[hkey[K], cell[K, V]]]

	// suspects lists the calls in this shard that may be changing their own
	// key. Nearly always nil. See suspect.
	suspects atomics.Pointer[suspect[K]]

	// What is above is read by every operation, what is below is written by
	// creations and deletions.
	_ atomics.CacheLinePad

	// live is at least the number of live cells in the table, and more only by
	// the creations and deletions in progress: a creator adds one before it
	// publishes a cell, the one whose CAS killed a cell subtracts one after.
	live atomics.Int64

	// floor is at least the version of every dead record whose cell has left
	// the table. It only grows. Deleters raise it before they unlink; creators
	// read it under the mutex of the key's bucket.
	floor atomics.Uint64

	_ atomics.CacheLinePad
}

// root is what every operation starts from. It is immutable but for what is
// inside the shards.
type root[K comparable, V any] struct {
	hash      func(K) uint64
	normalize func(K) (K, error) // or nil
	keys      table.Keys[K]
	shift     uint8 // of a hash, to leave the index of a shard
	shards    []shard[K, V]
}

// newRoot returns an empty registry of n shards, n a power of two.
func newRoot[K comparable, V any](n int, normalize func(K) (K, error)) *root[K, V] {
	o := &root[K, V]{
		normalize: normalize,
		keys:      table.NewKeys[K](),
		shift:     uint8(64 - bits.TrailingZeros(uint(n))),
		shards:    make([]shard[K, V], n),
	}
	o.hash = o.keys.Hash
	return o
}

// shard returns the shard of a key.
func (o *root[K, V]) shard(hash uint64) *shard[K, V] {
	return &o.shards[hash>>o.shift]
}

// load returns the cell that the table holds for k, dead or alive, or nil.
func (s *shard[K, V]) load(k hkey[K]) *cell[K, V] {
	if t := s.table.Load(); t != nil {
		return t.Load(k)
	}
	return nil
}

// loadLive returns the cell of k and its record, or nil and nil if k is
// absent.
//
// A dead cell that is still linked means absent, even if the table holds
// another by now: it died before the table was read, and then k was absent at
// that moment, or between that and the reading of its record, and then k was
// absent at the moment it died.
func (s *shard[K, V]) loadLive(k hkey[K]) (*cell[K, V], *record[V]) {
	if c := s.load(k); c != nil {
		if rec := c.rec.Load(); !rec.dead {
			return c, rec
		}
	}
	return nil, nil
}

// install returns the shard's table, which it makes if there is none.
func (s *shard[K, V]) install() *table.Table[hkey[K], cell[K, V]] {
	if t := s.table.Load(); t != nil {
		return t
	}
	s.table.CompareAndSwap(nil, table.New[hkey[K], cell[K, V]](
		func(k hkey[K]) uint64 { return k.hash }, 0))
	return s.table.Load()
}

// create publishes value as a new cell of k unless k is present, in which case
// it returns false with the cell and the record that are. It takes effect when
// the table stores the new cell, or else when it reads the record.
//
// The version is above all earlier ones of k. Every cell of k that has left the
// table did so under the mutex that is held here, either unlinked, after floor
// had been raised to its last version, or replaced here, by a cell that started
// above its last version.
func (s *shard[K, V]) create(k hkey[K], spelled K, value V) (*cell[K, V], *record[V], bool) {
	var (
		fresh   = &cell[K, V]{spelled: spelled}
		rec     = &record[V]{value: value}
		present *record[V]
	)
	fresh.rec.Store(rec)
	c := s.install().Compute(k, func(now *cell[K, V]) *cell[K, V] {
		last := s.floor.Load()
		if now != nil {
			present = now.rec.Load()
			if !present.dead {
				return now
			}
			last = max(last, uint64(present.version))
		}
		rec.version = Version(last) + 1
		s.live.Add(1)
		return fresh
	})
	if c != fresh {
		return c, present, false
	}
	s.tell(k)
	return c, rec, true
}

// kill deletes k, whose cell c holds the live record old, and reports whether
// it did; if not, the record has changed. It takes effect when the dead record
// is stored. What follows is housekeeping that no other operation waits for:
// meanwhile a creator may replace the dead cell.
func (s *shard[K, V]) kill(k hkey[K], c *cell[K, V], old *record[V]) bool {
	dead := &record[V]{version: old.version + 1, dead: true}
	if !c.rec.CompareAndSwap(old, dead) {
		return false
	}
	s.live.Add(-1)
	s.tell(k)
	s.raise(uint64(dead.version))
	s.table.Load().CompareAndDelete(k, c)
	return true
}

// raise lifts floor to version if it is lower. It is retried only when another
// deleter of the shard has raised it meanwhile.
func (s *shard[K, V]) raise(version uint64) {
	for {
		floor := s.floor.Load()
		if floor >= version || s.floor.CompareAndSwap(floor, version) {
			return
		}
	}
}
