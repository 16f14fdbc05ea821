//go:build modelcheck

package atomics

import "runtime"

// WhenGone calls nothing: an exploration does not collect what it explores.
func WhenGone[T, A any](*T, func(A), A) (none runtime.Cleanup) { return none }
