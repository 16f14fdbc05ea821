//go:build modelcheck

package mc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// maxChoices bounds Choose, so that a choice is one digit of a replay string.
const maxChoices = len(digits)

// Choose returns each value of [0, n) in some execution: for faults, inputs,
// luck. It may be called by the body and by threads.
func (m *M) Choose(n int) int { return Choose(n) }

// startVerb is the verb of a step that does nothing.
const startVerb = "start"

// Choose is M.Choose for code that has no M; outside executions it returns 0.
//
//go:norace
func Choose(n int) int {
	m := active
	if m == nil {
		return 0
	}
	if n < 1 || n > maxChoices {
		panic("mc: Choose of too few or too many")
	}
	if m.phase == leaving {
		m.leave(m.cur)
	}
	if t := m.cur; t != nil && !t.started {
		Step(&Op{Verb: startVerb}) // what a thread chooses is part of its run
	}
	m.settle()
	s := step{thread: -1}
	if m.cur != nil {
		s.thread = m.cur.id
	}
	values := uint64(1)<<n - 1
	if m.cfg.stall != nil && m.cfg.stall.beats {
		values = 1 // it is about numbers of steps
	}
	v := m.branch(values, true)
	m.trace = append(m.trace, s)
	if m.recording {
		m.notes = append(m.notes, note{text: fmt.Sprintf("Choose(%d) = %d", n, v), at: where()})
	}
	return v
}

// Fault is a way in which a function that the user supplies can end.
type Fault uint8

// The faults.
const (
	Error  Fault = iota // it returns ErrInjected
	Panic               // it panics with ErrInjected
	Goexit              // it calls runtime.Goexit
)

// ErrInjected is the error, or the value of the panic, of an injected fault.
var ErrInjected = errors.New("mc: injected fault")

// Fault returns nil in some executions, and in others ends in each of the
// given ways.
func (m *M) Fault(faults ...Fault) error {
	i := m.Choose(len(faults) + 1)
	if i == 0 {
		return nil
	}
	switch faults[i-1] {
	case Panic:
		panic(ErrInjected)
	case Goexit:
		runtime.Goexit()
	}
	return ErrInjected
}

// Jump advances the modelled clock by one of the given durations, or not at
// all, and returns by how much.
func (m *M) Jump(durations ...time.Duration) time.Duration {
	i := m.Choose(len(durations) + 1)
	if i == 0 {
		return 0
	}
	m.Advance(durations[i-1])
	return durations[i-1]
}

// Draw returns a number that it returns once in each execution, which depends
// on nothing but the calling thread and how often it has called.
//
//go:norace
func Draw() uint64 {
	m := active
	if m == nil || m.cur == nil {
		return rand.Uint64()
	}
	m.cur.drawn++
	return uint64(m.cur.id)<<32 | m.cur.drawn
}
