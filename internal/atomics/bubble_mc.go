//go:build modelcheck

package atomics

// Bubble returns zero: there are no bubbles in explorations.
func Bubble() (number uint64) { return 0 }
