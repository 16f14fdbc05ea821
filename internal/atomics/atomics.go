//go:build !modelcheck

package atomics

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Shared words. They are sequentially consistent and synchronise as package
// sync/atomic documents.
type (
	Bool   = atomic.Bool
	Int32  = atomic.Int32
	Int64  = atomic.Int64
	Uint32 = atomic.Uint32
	Uint64 = atomic.Uint64
)

// InitInt64 is InitPointer for an Int64.
func InitInt64(w *Int64, v int64) {
	// Safety: an atomic.Int64 is an int64 and fields without size.
	*(*int64)(unsafe.Pointer(w)) = v
}

// Gauge counts what is only looked at: no algorithm depends on it, so that the
// model need not either.
type Gauge = atomic.Int64

// Blocking parts, for the few paths whose documentation says that they block.
type (
	Mutex     = sync.Mutex
	WaitGroup = sync.WaitGroup
)
