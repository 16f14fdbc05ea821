package atomicbreaker

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// An absence is what a book knows of keys that have no cell. It has no type
// parameter, like the permits that are given for such keys, and so is all that
// healthy calls need: neither the settings nor the table.
type absence struct {
	home owner // the book
	kind carry // how keys travel without the time
	eras eras

	// root is where the group has its book: another, once ResetAll has replaced
	// this one.
	root *atomics.Pointer[absence]

	// linked is at least the number of cells in the table, and by biased more
	// while calls have to look at the book's settings; each stripe is at least the
	// number of cells with its hashes. They go up before a cell is inserted and
	// down after it was removed. While linked is zero every key is absent, and
	// while a stripe is zero every key with its hashes is. That saves healthy keys
	// the hash, or the table.
	linked atomics.Int64

	// stripes is nil before the first insert. From nil to an array, by CAS,
	// before linked goes up for the first time.
	stripes atomics.Pointer[[stripes]atomics.Uint32]
}

const (
	// stripes bounds how many keys may have failures before most healthy ones
	// share their stripe with one. They take 16 KiB, half of an L1 cache.
	stripes    = 1 << stripeBits
	stripeBits = 12

	// biased is more than there can be cells.
	biased = 1 << 48
)

// stripeOf returns the index of the stripe of the cells with a hash.
func stripeOf(hash uint64) uint64 { return hash >> (64 - stripeBits) }

// bookOf converts the absence of a book back.
func bookOf[K comparable](a *absence) *book[K] {
	// Safety: a book's pages are its first field, and theirs its absence; and the
	// root of a group leads to those of its own books.
	return (*book[K])(unsafe.Pointer(a))
}

// pagesOf converts the absence of a book back, nil for nil.
func pagesOf(a *absence) *pages {
	// Safety: see bookOf.
	return (*pages)(unsafe.Pointer(a))
}

// empty reports whether every key is absent for sure, and need not be hashed.
func (a *absence) empty() bool { return a.linked.Load() == 0 }

// count returns how many cells are linked.
func (a *absence) count() int64 { return a.linked.Load() & (biased - 1) }

// free reports whether every key with a hash is absent for sure.
func (a *absence) free(hash uint64) bool {
	s := a.stripes.Load()
	return s == nil || s[stripeOf(hash)].Load() == 0
}

// replaced reports whether ResetAll has replaced the book.
func (a *absence) replaced() bool { return a.root.Load() != a }

// stillAbsent reports whether a key with a stripe, which was absent in an era, is
// absent for sure and has been since. It takes no hash. The stripe is 1 + its
// number, or 0 if that is not known.
func (a *absence) stillAbsent(stripe uint64, since *era) bool {
	if a.linked.Load() != 0 {
		s := a.stripes.Load()
		if stripe == 0 || s != nil && s[stripe-1].Load() != 0 {
			return false
		}
	}
	return a.eras.now.Load() == since
}
