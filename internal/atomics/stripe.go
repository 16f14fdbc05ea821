//go:build !modelcheck

package atomics

import (
	"math/bits"
	"runtime"
	"unsafe"
)

// maxStripes bounds the memory of a split counter, a cache line for each.
const maxStripes = 64

// Stripes returns the number of cells to split a contended counter into: a
// power of two, and not less than the number of threads that run, up to 64.
func Stripes() int {
	return 1 << bits.Len(uint(min(runtime.GOMAXPROCS(0), maxStripes)-1))
}

// Stripe returns the cell of n, a power of two, that the calling goroutine
// should use now. It tends to be the same one for what runs on one processor,
// and another one on another: it depends on where the goroutine's stack is,
// and each processor hands the stacks of its dead goroutines to its new ones.
//
// Safety: the address becomes a number at once and is never followed.
func Stripe(n int) int {
	var here byte
	const smallest = 11 // bits: stacks are 2 KiB or more
	stack := uint64(uintptr(unsafe.Pointer(&here))) >> smallest
	return int(stack*0x9e3779b97f4a7c15>>32) & (n - 1)
}
