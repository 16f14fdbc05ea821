package atomics

import "time"

// later is time.AfterFunc, but that a timer which was stopped keeps nothing alive
// that f refers to: the runtime may hold it until it would have fired.
func later(d time.Duration, f func()) (stop func()) {
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
