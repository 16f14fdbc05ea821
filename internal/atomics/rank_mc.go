//go:build modelcheck

package atomics

import "github.com/latchfree/latchfree/internal/tools/mc"

// Rank returns a number that no other call in the execution returns.
func Rank() uint64 { return mc.Draw() }
