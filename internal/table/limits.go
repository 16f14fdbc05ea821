//go:build !modelcheck

package table

// segmentChains is how many chains are allocated at a time.
const segmentChains = 1 << 12

// bitsAhead is how many bits of a hash a bucket has for its growth: a set grows
// that often before a key is hashed again.
const bitsAhead = 3

// limits has the limits that are smaller while interleavings are explored, where
// few operations should get as far. Nothing else differs.
type limits struct{}

// portion returns how many chains a call moves, or looks at to move them, while
// the set grows: as many as lie on a page of memory. While it shrinks these are
// sparse times as many.
func (limits) portion() int { return 64 }
