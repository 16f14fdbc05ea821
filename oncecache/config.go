package oncecache

import (
	"fmt"
	"math/bits"
)

// maxSizeHint keeps the number of buckets, about SizeHint/4 rounded up to a
// power of two, within the 32 bits that the table counts them in: 2³⁰. Where
// the address space has 32 bits too, it keeps the buckets, 64 bytes each,
// within half a gigabyte of it: 2²⁴.
const maxSizeHint = 1 << (18 + 6*(bits.UintSize/32))

// Config holds the settings of a [Cache]. Its zero value holds the defaults,
// which are also those of a zero Cache.
type Config[K comparable, V any] struct {
	// SizeHint is the number of keys to make room for at once: at most 2³⁰, or
	// 2²⁴ on a 32-bit machine. The table does not shrink below that room. Zero
	// means to start small.
	SizeHint int
}

func (c *Config[K, V]) validate() error {
	if c.SizeHint < 0 || c.SizeHint > maxSizeHint {
		return fmt.Errorf("oncecache: Config.SizeHint is %d, must be from 0 to %d", c.SizeHint, maxSizeHint)
	}
	return nil
}
