//go:build !modelcheck

package atomics

import "time"

// After calls f on a goroutine of its own when d has passed, unless stop comes
// first. It does not tell whether stop came in time.
func After(d time.Duration, f func()) (stop func()) { return later(d, f) }
