// Package atomics is the one seam through which latchfree touches shared
// words. In this build every name is an alias of the standard library's type,
// so the seam costs nothing: see Inline* for the one thing aliases need.
//
// The four public packages import this package and never sync/atomic, which
// keeps every shared access in one place that an instrumented build can
// replace.
package atomics

import (
	"sync"
	"sync/atomic"
)

// Shared words. They are sequentially consistent and synchronise as package
// sync/atomic documents.
type (
	Bool           = atomic.Bool
	Int32          = atomic.Int32
	Int64          = atomic.Int64
	Uint32         = atomic.Uint32
	Uint64         = atomic.Uint64
	Pointer[T any] = atomic.Pointer[T]
)

// Blocking parts, for the few paths whose documentation says that they block.
type (
	Mutex     = sync.Mutex
	WaitGroup = sync.WaitGroup
)

// CacheLineSize is the unit in which caches exchange memory on the machines
// that matter to us. Words with different writers are kept this far apart.
const CacheLineSize = 64

// CacheLinePad keeps the fields before it and after it in different cache
// lines.
type CacheLinePad struct{ _ [CacheLineSize]byte }

// NoCopy, as the first field of a struct, makes go vet report copies of it.
type NoCopy struct{}

// Lock is a no-op; its presence is what go vet's copylocks check looks for.
func (*NoCopy) Lock() {}

// Unlock is a no-op like Lock.
func (*NoCopy) Unlock() {}
