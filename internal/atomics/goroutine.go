//go:build !modelcheck

package atomics

import "github.com/latchfree/latchfree/internal/goid"

// Goroutine returns the id of the calling goroutine, or 0: see goid.ID, which is
// slow.
func Goroutine() uint64 { return goid.ID() }
