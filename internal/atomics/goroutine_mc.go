//go:build modelcheck

package atomics

import "github.com/latchfree/latchfree/internal/tools/mc"

// Goroutine returns the id of the calling thread.
func Goroutine() uint64 { return mc.Goroutine() }
