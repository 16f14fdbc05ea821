//go:build !modelcheck

package atomics

import "runtime"

// WhenGone is runtime.AddCleanup: it calls f with arg when nobody can reach what p points to.
func WhenGone[T, A any](p *T, f func(A), arg A) runtime.Cleanup {
	return runtime.AddCleanup(p, f, arg)
}
