package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// cell is one life of one key, from its creation to its deletion. A key that
// is created again gets another cell. Cells are small rather than padded: four
// share a cache line, which may cost readers of a key whose neighbour changes
// all the time, and keeps more of a large registry in the caches.
type cell[K comparable] struct {
	key K // normalised

	// rec is never nil once the cell is in the table. Writers of the key replace
	// a live record by CAS; a dead one is final. Everybody reads.
	rec atomics.Pointer[record]

	// meta is what few cells have besides, or nil. Replaced by CAS by those who
	// tell watchers of a change, by watchers that leave, and by a deleter that
	// leaves the cell in the table.
	meta atomics.Pointer[cellMeta[K]]
}

// named returns the key of c, whose hash is hash.
func (c *cell[K]) named(hash uint64) hkey[K] { return hkey[K]{Hash: hash, Key: c.key} }
