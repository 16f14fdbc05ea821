//go:build !modelcheck

package atomics

import "math/rand/v2"

// Rank returns a number that is hardly ever returned twice, by which things
// that have no order can be put in one.
func Rank() uint64 { return rand.Uint64() }
