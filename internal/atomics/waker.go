package atomics

// TryFire fires e unless it has fired. Several goroutines may call it: one that had
// claimed the right to fire could stall before it does, so all callers try, and the
// event's own lock picks one. The others panic, which TryFire recovers.
func (e *Event) TryFire() {
	if e.Fired() {
		return
	}
	defer func() { _ = recover() }()
	e.Fire()
}

// Waker is where goroutines wait for a condition that others bring about. Its zero
// value is ready.
//
// No wake-up is lost: a waiter takes the event and then looks at the condition, and
// a goroutine that has brought the condition about calls Wake after that.
//
//	for e := w.Event(); !condition(); e = w.Event() {
//		e.Wait()
//	}
type Waker struct {
	// event is nil, or what waiters sleep on. A waiter replaces nil or an event that
	// has fired by CAS. A goroutine that has fired it replaces it by nil.
	event Pointer[Event]
}

// Event returns the event that the next Wake fires. The CAS fails only when another
// goroutine has come to wait, or was woken.
func (w *Waker) Event() *Event {
	for {
		e := w.event.Load()
		if e != nil && !e.Fired() {
			return e
		}
		made := MakeEvent()
		if w.event.CompareAndSwap(e, &made) {
			return &made
		}
	}
}

// Wake wakes the goroutines that wait. It fires the event before it takes it away, so
// that others do the rest if it stalls in between.
func (w *Waker) Wake() {
	if e := w.event.Load(); e != nil {
		e.TryFire()
		w.event.CompareAndSwap(e, nil)
	}
}
