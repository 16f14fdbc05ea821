//go:build modelcheck

package atomics

import (
	"fmt"
	"unsafe"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Event is the twin of the Event in event.go, which documents it.
type Event struct{ s *eventState }

type eventState struct {
	fired int32 // the gate
	ch    chan struct{}
}

// MakeEvent returns an unfired event.
func MakeEvent() Event { return Event{&eventState{ch: make(chan struct{})}} }

// ModelWord is the address by which the model knows the event: copies of an
// Event are one event.
//
// Safety: the address only names the word to the model.
func (e *Event) ModelWord() unsafe.Pointer { return unsafe.Pointer(e.s) }

func (e *Event) op(verb string, class mc.Class, mode mc.Mode, blocks bool) mc.Op {
	return mc.Op{
		Verb: verb, Class: class, On: mc.Access{Addr: e.ModelWord(), Mode: mode},
		Gate: &e.s.fired, Want: 1, Blocks: blocks,
	}
}

func (e *Event) step(verb string, class mc.Class, mode mc.Mode, blocks bool) {
	o := e.op(verb, class, mode, blocks)
	mc.Step(&o)
}

// Fire is a step that writes.
func (e *Event) Fire() {
	e.step("Fire", mc.Blocking, mc.Write, false)
	close(e.s.ch)
	mc.Set(&e.s.fired, 1)
}

// Wait is a step that is enabled once the event has fired.
func (e *Event) Wait() {
	e.step("Wait", mc.Blocking, mc.Read, true)
	<-e.s.ch
}

// Done returns the real channel, which Fire closes. To receive from it is not
// a step: modelled threads must use Wait or Fired instead.
func (e *Event) Done() <-chan struct{} {
	if e.s == nil {
		return nil
	}
	return e.s.ch
}

// Fired is a step that reads. The zero Event, which nobody can fire, has not
// fired.
func (e *Event) Fired() bool {
	if e.s == nil {
		return false
	}
	e.step("Fired", mc.Load, mc.Read, false)
	fired := false
	select {
	case <-e.s.ch:
		fired = true
	default:
	}
	mc.Note(func() string { return fmt.Sprintf("Fired() = %v", fired) })
	return fired
}
