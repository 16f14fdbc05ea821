//go:build modelcheck

package mc

import (
	"math/bits"
	"sync/atomic"

	"github.com/latchfree/latchfree/internal/goid"
)

// active is the execution in progress. Goroutines that are not its threads
// must not touch the seam meanwhile; Explore sees to that as far as it can.
var active *M

// Modelled reports whether an execution is in progress: then the twins of
// blocking types keep their model's state, and otherwise they just work.
//
//go:norace
func Modelled() bool { return active != nil }

// Step waits until the scheduler lets the calling thread take the step. On
// return the thread has the turn and takes it at once. Outside explorations,
// in a body and in Final it returns immediately.
//
//go:norace
func Step(o *Op) {
	if c := counter(); c != nil {
		c.add(o.Class)
	}
	if m := active; m != nil {
		if m.cur != nil {
			m.step(o)
		} else if o.Blocks {
			m.await(o)
		}
	}
}

// Did says what the step just taken turned out to do to its words, where that
// is less than it announced: a failed compare-and-swap only reads.
//
//go:norace
func Did(on, also Mode) {
	if m := active; m != nil && m.phase == running {
		s := &m.trace[len(m.trace)-1].pending
		s.on.mode, s.also.mode = on, also
		if also == None {
			s.also.word = 0
		}
		if m.cfg.lines != nil && on == Read {
			m.cfg.lines.onlyRead()
		}
	}
}

// Steps returns the number of steps taken so far in this execution.
//
//go:norace
func Steps() int {
	if m := active; m != nil {
		return len(m.trace)
	}
	return 0
}

// Goroutine is goid.ID.
//
//go:norace
func Goroutine() uint64 {
	if m := active; m != nil && m.cur != nil {
		return m.cur.goid
	}
	return goid.ID()
}

// Set writes a gate without the race detector seeing it.
//
//go:norace
func Set(gate *int32, v int32) { *gate = v }

// Get reads a gate without the race detector seeing it.
//
//go:norace
func Get(gate *int32) int32 { return *gate }

//go:norace
func (m *M) step(o *Op) {
	t := m.cur
	if m.phase == leaving {
		m.leave(t)
	}
	if t.token != goid.Token() {
		m.misuse("a goroutine took a step that was started neither by m.Go nor by atomics.Go")
		return
	}
	raceOff()
	m.settle()
	t.verb = o.Verb
	m.pend(o, &t.next)
	if m.recording {
		t.at = where()
	}
	if !t.started {
		t.started = true
		m.pass(t.parent)
		<-t.wake
	} else if n := m.choose(); n != t {
		m.pass(n)
		<-t.wake
	}
	if m.phase == meeting {
		raceOn()
		m.leave(t)
	}
	if m.phase == running {
		m.record(t)
	}
	if m.cfg.lines != nil {
		m.cfg.lines.touch(t.id, o)
	}
	raceOn()
}

// pass gives the turn to a thread, or to the controller.
//
//go:norace
func (m *M) pass(t *thread) {
	m.cur = t
	if t == nil {
		m.control <- struct{}{}
	} else {
		t.wake <- struct{}{}
	}
}

// record appends the step that t takes now.
//
//go:norace
func (m *M) record(t *thread) {
	if m.cfg.lines != nil && !m.recording {
		m.trace = m.trace[:0] // nobody asks for more than the last step
	}
	s := m.extend()
	s.thread, s.pending, s.before, s.alsoBefore = t.id, t.next, 0, 0 // settle sets the rest
	if s.on.gate != nil {
		s.before = *s.on.gate
	}
	if s.also.gate != nil {
		s.alsoBefore = *s.also.gate
	}
	if m.recording {
		m.notes = append(m.notes, note{text: t.verb + "()", at: t.at})
	}
	if m.cfg.stall != nil {
		m.cfg.stall.count(m, t)
	}
}

// extend makes the trace one step longer, and returns that step as it is: to
// clear it first would take longer than all that is written there.
//
//go:norace
func (m *M) extend() *step {
	if len(m.trace) < cap(m.trace) {
		m.trace = m.trace[:len(m.trace)+1]
	} else {
		m.trace = append(m.trace, step{})
	}
	return &m.trace[len(m.trace)-1]
}

// choose picks the thread that moves next; nil ends the execution. The caller
// has the turn.
//
//go:norace
func (m *M) choose() *thread {
	if m.phase != running {
		return nil // await goes on
	}
	enabled, left := m.enabled()
	if enabled == 0 && m.cfg.stall != nil {
		m.overtake()
		m.cfg.stall.stuck(m)
		return nil
	}
	if !left {
		return nil
	}
	if enabled == 0 {
		m.fail("deadlock: the threads that are left wait for ever")
		return nil
	}
	if m.steps++; m.steps > m.cfg.MaxSteps {
		m.fail("livelock: more steps than Config.MaxSteps")
		return nil
	}
	if m.cfg.stall != nil {
		enabled = m.narrow(enabled)
	}
	return m.threads[m.branch(enabled, false)]
}

// enabled returns the threads whose next step is enabled, and whether there is
// any thread left.
//
//go:norace
func (m *M) enabled() (set uint64, left bool) {
	for _, t := range m.threads {
		if !t.started || t.finished {
			continue
		}
		if s := m.cfg.stall; s == nil || m.phase != running || s.required(t) {
			left = true
		} else if s.stops(t) {
			continue
		}
		if t.next.enabled() {
			set |= 1 << t.id
		}
	}
	return set, left || set != 0
}

// execute runs the body once.
func (m *M) execute(body func(*M)) {
	m.execution = execution{
		control: make(chan struct{}, 1),
		picks:   m.picks[:0],
		trace:   m.trace[:0],
		words:   m.words,
		touched: m.touched[:0],
		notes:   m.notes[:0],
		fresh:   max(0, len(m.stack)-1),
	}
	m.words.reset()
	races := raceErrors()
	if m.cfg.Mode == PCT {
		m.changePoints()
	}
	active = m
	m.guard(body)
	active = nil
	m.dismiss()
	if raceErrors() != races {
		m.Failf("data race, reported above by the race detector")
	}
}

// run is the execution: the body, the threads, Final.
func (m *M) run(body func(*M)) {
	body(m)
	for _, t := range m.threads {
		if !t.started {
			m.launch(t)
		}
	}
	m.phase = running
	if t := m.choose(); t != nil {
		m.pass(t)
		<-m.control
	}
	m.cur, m.phase = nil, done
	m.longest = max(m.longest, m.steps)
	m.returned.Load()
	if m.cfg.stall != nil && m.failure == "" {
		m.resume()
	}
	if m.final != nil && m.failure == "" {
		m.final()
		m.await(nil)
		m.returned.Load()
	}
}

//go:norace
func (m *M) main(t *thread) {
	defer m.exit(t)
	t.fn()
	t.returned = true
}

// exit ends t, which has returned, panicked or called runtime.Goexit.
//
//go:norace
func (m *M) exit(t *thread) {
	if r := recover(); r != nil {
		m.Failf("T%d panicked: %v", t.id, r)
		t.returned = true
	}
	m.returned.Add(1)
	raceOff()
	m.settle()
	t.finished = m.phase != leaving // or the trace shows where it waited
	if !t.started {
		t.started = true
		m.pass(t.parent)
	} else {
		m.pass(m.choose())
	}
	raceOn()
}

// first returns the lowest thread or datum of a set.
//
//go:norace
func first(set uint64) int { return bits.TrailingZeros64(set) }

// Raw is a real atomic pointer, for modelled types outside internal/atomics:
// what they do to it gives the race detector the edges that a program has.
type Raw[T any] = atomic.Pointer[T]
