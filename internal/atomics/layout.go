// Package atomics is the one seam through which latchfree touches shared
// words. In a normal build every name but Pointer is an alias of the standard
// library's type, so the seam costs nothing: see Inline* for the one thing aliases
// need. Under the build tag modelcheck the names are twins that ask internal/tools/mc for
// their turn before they do the same.
//
// The four public packages import this package and never sync/atomic, which
// keeps every shared access in this one place.
package atomics

// CacheLineSize is the unit in which caches exchange memory on the machines
// that matter to us. Words with different writers are kept this far apart.
const CacheLineSize = 64

// CacheLinePad keeps the fields before it and after it in different cache
// lines.
type CacheLinePad struct{ _ [CacheLineSize]byte }

// NoCopy, as the first field of a struct, makes go vet report copies of it, and the
// compiler comparisons: a function that compares would be in each program that
// allocates one.
type NoCopy struct{ _ [0]func() }

// Lock is a no-op; its presence is what go vet's copylocks check looks for.
func (*NoCopy) Lock() {}

// Unlock is a no-op like Lock.
func (*NoCopy) Unlock() {}
