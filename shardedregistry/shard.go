package shardedregistry

import (
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// cell is one life of one key, from its creation to its deletion. A key that
// is created again gets another cell. Cells are small rather than padded: four
// share a cache line, which may cost readers of a key whose neighbour changes
// all the time, and keeps more of a large registry in the caches.
type cell[K comparable] struct {
	key K // normalised

	// rec is never nil once the cell is in a table. Writers of the key replace
	// a live record by CAS; a dead one is final. Everybody reads.
	rec atomics.Pointer[record]

	// side is what few cells have besides, or nil. Replaced by CAS by those who
	// tell watchers of a change, by watchers that leave, and by a deleter that
	// leaves the cell in the table.
	side atomics.Pointer[side[K]]
}

// named returns the key of c, whose hash is hash.
func (c *cell[K]) named(hash uint64) hkey[K] { return hkey[K]{Hash: hash, Key: c.key} }

// shard is an independent part of the registry. A key belongs to the shard
// that the top bits of its hash name; the table uses the low ones. Until its
// first key is created it consists of these two words, which are read by every
// operation and hardly ever written.
type shard[K comparable] struct {
	// table is nil until the shard's first key is created; then a creator
	// installs it by CAS and it stays. Everybody reads.
	table atomics.Pointer[body[K]]

	// suspects lists the calls in this shard that may be changing their own
	// key. Nearly always nil. See suspect.
	suspects atomics.Pointer[suspect[K]]
}

// body is the table of a shard, and what creations and deletions write beside
// it.
type body[K comparable] struct {
	table.Cells[K, cell[K]] // ends with a line that who creates and deletes writes

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

// load returns the cell that the table holds for k, dead or alive, or nil.
func (s *shard[K]) load(k hkey[K]) *cell[K] {
	if b := s.table.Load(); b != nil {
		return b.Load(k)
	}
	return nil
}

// install returns the shard's table, which it makes if there is none.
func (s *shard[K]) install(hash func(K) uint64) *body[K] {
	if b := s.table.Load(); b != nil {
		return b
	}
	b := new(body[K])
	b.Init(func(k K, _ uint64) uint64 { return hash(k) }, 0)
	s.table.CompareAndSwap(nil, b)
	return s.table.Load()
}

// unlink takes the dead cell c of k out of the table, if no creator has
// replaced it. Floor goes first, so that whoever finds k absent finds it raised.
func (b *body[K]) unlink(k hkey[K], c *cell[K], dead *record) {
	version := uint64(dead.version())
	for { // until no other deleter raises it between the two lines
		floor := b.floor.Load()
		if floor >= version || b.floor.CompareAndSwap(floor, version) {
			break
		}
	}
	b.CompareAndDelete(k, c)
}
