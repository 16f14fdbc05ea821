package cowchangeset

import "github.com/latchfree/latchfree/internal/atomics"

// watch wakes those who wait for more. No wake-up is lost: who waits shows the event
// and then looks for what it waits for, and who has brought that about has done so
// before it looks for the event.
type watch struct {
	// event is nil, or what those who wait sleep on. By CAS, from nil by who
	// waits, and to nil by whoever has fired it.
	event atomics.Pointer[atomics.Event]
}

// show returns the event, for the caller to wait for if there is no news since, or nil
// if there may be: somebody else has come to wait, or has just been woken.
func (w *watch) show() *atomics.Event {
	e := w.event.Load()
	if e != nil && e.Fired() {
		w.event.CompareAndSwap(e, nil) // who has fired it may be stalled
		e = nil
	}
	if e == nil {
		made := atomics.MakeEvent()
		if e = &made; !w.event.CompareAndSwap(nil, e) {
			return nil
		}
	}
	return e
}

// wake wakes those who wait for what the caller has done. It fires before it takes
// the event away, so that if it stalls in between, others do the rest.
func (w *watch) wake() {
	if e := w.event.Load(); e != nil {
		fire(e)
		w.event.CompareAndSwap(e, nil)
	}
}
