//go:build !modelcheck

package atomics

// Limit returns a limit that is set for speed: normal here, and checked in the
// model, where few operations should get as far. Nothing else of the code
// under test differs from the code that ships.
func Limit(normal, checked int) int { return normal }
