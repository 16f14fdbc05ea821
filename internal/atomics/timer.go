//go:build !modelcheck

package atomics

import "time"

// After calls f on a goroutine of its own when d has passed, unless stop comes
// first. A timer that was stopped keeps nothing alive that f refers to: the
// runtime may hold it until it would have fired.
func After(d time.Duration, f func()) (stop func()) {
	due := &deferred{f}
	t := time.AfterFunc(d, due.run)
	return func() {
		if t.Stop() {
			due.f = nil // nobody else looks at it any more
		}
	}
}

type deferred struct{ f func() }

func (d *deferred) run() { d.f() }
