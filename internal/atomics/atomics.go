//go:build !modelcheck

package atomics

import (
	"sync"
	"sync/atomic"
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

// Gauge counts what is only looked at: no algorithm depends on it, so that the
// model need not either.
type Gauge = atomic.Int64

// Blocking parts, for the few paths whose documentation says that they block.
type (
	Mutex     = sync.Mutex
	WaitGroup = sync.WaitGroup
)
