//go:build !modelcheck

package atomics

import "time"

// After calls f on a goroutine of its own once d has passed, unless stop is
// called before: time.AfterFunc. It does not tell whether stop came in time.
func After(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}
