//go:build modelcheck

package atomics

import "github.com/latchfree/latchfree/internal/tools/mc"

// Limit returns checked, or normal while costs are measured: see limit.go.
func Limit(normal, checked int) int {
	if mc.Measuring() {
		return normal
	}
	return checked
}
