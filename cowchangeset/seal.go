package cowchangeset

import "github.com/latchfree/latchfree/internal/atomics"

// seal ends reservations, if nobody has done so yet.
func (l *log[E]) seal() {
	if !l.closed.Load() {
		l.reserved.Or(sealed) // LP(Seal, Start): the first to set the bit
		l.publishSeal()
	}
}

// open reports whether the log accepts entries.
func (l *log[E]) open() bool {
	if l.reserved.Load()&sealed == 0 {
		return true
	}
	l.finishSeal()
	return false
}

// finishSeal finishes a seal. Any goroutine that sees the bit does so, so that it does not
// depend on the one that set it.
func (l *log[E]) finishSeal() {
	if !l.closed.Load() {
		l.publishSeal()
	}
}

// publishSeal is finishSeal for a caller that has just seen that it is needed.
func (l *log[E]) publishSeal() {
	if e := l.over.Load(); e != nil {
		e.TryFire()
	}
	l.watch.Wake()
	l.closed.Store(true) // after the events: whoever sees this has nothing left to do
}

// sealing returns the event of the seal. It may make the event after publishSeal has
// looked for it; but then it sees the bit afterwards, and fires the event itself.
func (l *log[E]) sealing() *atomics.Event {
	e := l.over.Load()
	if e == nil {
		made := atomics.MakeEvent()
		e = l.over.Install(&made)
	}
	if !l.open() { // LP(Sealed)
		e.TryFire()
	}
	return e
}
