package atomicbreaker

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A presence is what a group state knows of keys that have no cell. It has no type
// parameter, like the permits that are given for such keys, and so is all that
// healthy calls need: neither the settings nor the table.
type presence struct {
	home       owner      // the group state
	packing    keyPacking // how keys travel without the time
	departures departures

	// current is where the group has its state: another, once ResetAll has replaced
	// this one.
	current *atomics.Pointer[presence]

	// linked is at least the number of cells in the table, and by biased more
	// while calls have to look at the group state's settings; each slot of filter is at least the
	// number of cells with its hashes. They go up before a cell is inserted and
	// down after it was removed. While linked is zero every key is absent, and
	// while a slot is zero every key with its hashes is. That saves healthy keys
	// the hash, or the table.
	linked atomics.Int64

	// filter is nil before the first insert. From nil to an array, by CAS,
	// before linked goes up for the first time.
	filter atomics.Pointer[[filterSize]atomics.Uint32]
}

const (
	// filterSize bounds how many keys may have failures before most healthy ones
	// share their slot with one. They take 16 KiB, half of an L1 cache.
	filterSize = 1 << filterBits
	filterBits = 12

	// biased is more than there can be cells.
	biased = 1 << 48
)

// filterSlot returns the index of the slot of the cells with a hash.
func filterSlot(hash uint64) uint64 { return hash >> (64 - filterBits) }

// keyedStateOf converts the presence of a group state back.
func keyedStateOf[K comparable](p *presence) *keyedState[K] {
	// Safety: a keyedState begins with its groupState, and that with its presence; and the
	// root of a group leads to those of its own states.
	return (*keyedState[K])(unsafe.Pointer(p))
}

// groupStateOf converts the presence of a group state back, nil for nil.
func groupStateOf(p *presence) *groupState {
	// Safety: see keyedStateOf.
	return (*groupState)(unsafe.Pointer(p))
}

// empty reports whether every key is absent for sure, and need not be hashed.
func (p *presence) empty() bool { return p.linked.Load() == 0 }

// count returns how many cells are linked.
func (p *presence) count() int64 { return p.linked.Load() & (biased - 1) }

// free reports whether every key with a hash is absent for sure.
func (p *presence) free(hash uint64) bool {
	s := p.filter.Load()
	return s == nil || s[filterSlot(hash)].Load() == 0
}

// replaced reports whether ResetAll has replaced the group state.
func (p *presence) replaced() bool { return p.current.Load() != p }

// stillAbsent reports whether a key with a slot, which was absent when since was the
// last departure, is absent for sure and has been since. It needs no hash. Slot is 1 + its
// number, or 0 if that is not known.
func (p *presence) stillAbsent(slot uint64, since *departure) bool {
	if p.linked.Load() != 0 {
		s := p.filter.Load()
		if slot == 0 || s != nil && s[slot-1].Load() != 0 {
			return false
		}
	}
	return p.departures.last.Load() == since
}
