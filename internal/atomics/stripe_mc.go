//go:build modelcheck

package atomics

import "github.com/latchfree/latchfree/internal/tools/mc"

// Stripes is the smallest number of cells that makes a difference, or the
// largest while costs are measured.
func Stripes() int { return Limit(64, 2) }

// Stripe is each of the cells in some execution. While costs are measured, it
// is the core's own, as it tends to be.
func Stripe(n int) int {
	if mc.Measuring() {
		return mc.Core() % n
	}
	return mc.Choose(n)
}
