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

	// Close, if it is set, makes the values the cache's own: it is called once
	// for each value that was created or set, when that is no longer the
	// key's and no lease holds it. A value that is replaced, deleted or
	// discarded without leases is closed at once, and so is one that is not
	// kept: use [Cache.Acquire] to hold a value. SetIfAbsent leaves a value
	// that it does not store to its caller, and a value that a create function
	// returns beside an error is none.
	//
	// It runs on the goroutine of the call that found nobody else to use the
	// value, outside every lock; that call does not get to know how it ends.
	// Errors, and panics as [*PanicError], are returned by [Cache.Close].
	//
	// Nil means that nothing is ever closed.
	Close func(K, V) error

	// KeepCreating lets creations go on whose callers have all left, so that
	// the next caller finds a value rather than a creation that was cancelled.
	// Set and Close cancel them all the same.
	KeepCreating bool
}

func (c *Config[K, V]) validate() error {
	if c.SizeHint < 0 || c.SizeHint > maxSizeHint {
		return fmt.Errorf("oncecache: Config.SizeHint is %d, must be from 0 to %d", c.SizeHint, maxSizeHint)
	}
	return nil
}
