//go:build modelcheck

package atomics

import "github.com/latchfree/latchfree/internal/mc"

// Stripes is the smallest number of cells that makes a difference.
func Stripes() int { return 2 }

// Stripe is each of the cells in some execution.
func Stripe(n int) int { return mc.Choose(n) }
