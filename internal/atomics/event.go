//go:build !modelcheck

package atomics

// Event is a one-shot broadcast: it starts unfired, fires at most once, and
// stays fired. It must be made with MakeEvent.
//
// Fire happens before the return of every Wait and every receive from Done
// that it lets through.
type Event struct{ ch chan struct{} }

// MakeEvent returns an unfired event.
func MakeEvent() Event { return Event{make(chan struct{})} }

// Fire wakes everyone who waits now or later. Its caller owns the event's
// only firing: a second Fire panics.
func (e *Event) Fire() { close(e.ch) }

// Wait blocks until the event has fired.
func (e *Event) Wait() { <-e.ch }

// Done returns a channel that is closed when the event fires.
func (e *Event) Done() <-chan struct{} { return e.ch }

// Fired reports whether the event has fired.
func (e *Event) Fired() bool {
	select {
	case <-e.ch:
		return true
	default:
		return false
	}
}
