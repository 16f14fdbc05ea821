//go:build modelcheck

package mc

import (
	"math/bits"
	"sync/atomic"
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
func Step(o Op) {
	if meter != nil {
		meter.add(o.Class)
	}
	if m := active; m != nil && m.cur != nil {
		m.step(&o)
	}
}

// Did says what the step just taken turned out to do to its words, where that
// is less than it announced: a failed compare-and-swap only reads.
//
//go:norace
func Did(on, also Mode) {
	if m := active; m != nil && m.cur != nil {
		s := &m.trace[len(m.trace)-1].pending
		s.on.mode, s.also.mode = on, also
		if also == None {
			s.also.word = 0
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
	raceOff()
	m.settle()
	t := m.cur
	t.verb = o.Verb
	t.next = pending{
		on:     access{m.words.number(o.On.Addr), o.On.Mode},
		also:   access{m.words.number(o.Also.Addr), o.Also.Mode},
		gate:   o.Gate,
		want:   o.Want,
		blocks: o.Blocks,
	}
	if m.recording {
		t.at = where()
	}
	if m.phase == launch {
		m.pass(nil)
		<-t.wake
	} else if n := m.choose(); n != t {
		m.pass(n)
		<-t.wake // for ever, if that was the end of the execution
	}
	m.record(t)
	if m.cfg.lines != nil {
		m.cfg.lines.touch(t.id, o.On)
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
	s := step{thread: t.id, pending: t.next}
	if s.gate != nil {
		s.before = *s.gate
	}
	m.trace = append(m.trace, s)
	if m.recording {
		m.notes = append(m.notes, note{text: t.verb + "()", at: t.at})
	}
}

// choose picks the thread that moves next; nil ends the execution. The caller
// has the turn.
//
//go:norace
func (m *M) choose() *thread {
	var enabled uint64
	left := false
	for _, t := range m.threads {
		if t.finished {
			continue
		}
		left = true
		if t.next.enabled() {
			enabled |= 1 << t.id
		}
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
	return m.threads[m.branch(enabled, false)]
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
	active = m
	body(m)
	m.start()
	m.phase = launch
	for _, t := range m.threads {
		m.launch(t)
	}
	m.phase = running
	raceOff()
	if t := m.choose(); t != nil {
		m.pass(t)
		<-m.control
	}
	raceOn()
	m.cur, m.phase = nil, done
	m.longest = max(m.longest, m.steps)
	m.returned.Load()
	if m.final != nil && m.failure == "" {
		m.final()
	}
	active = nil
	if raceErrors() != races {
		m.Failf("data race, reported above by the race detector")
	}
}

// start checks the body and prepares what depends on the number of threads.
func (m *M) start() {
	limit := maxThreads
	if m.cfg.Mode == roundRobin {
		limit = 64
	}
	if len(m.threads) > limit {
		active = nil
		panic("mc: too many threads")
	}
	if m.cfg.Mode == PCT {
		m.shuffle()
	}
}

// launch starts t and returns when t waits before its first step.
func (m *M) launch(t *thread) {
	raceOff()
	m.cur = t
	raceOn()
	go m.main(t)
	raceOff()
	<-m.control
	raceOn()
}

//go:norace
func (m *M) main(t *thread) {
	defer m.exit(t)
	t.fn()
}

// exit ends t, which has returned, panicked or called runtime.Goexit.
//
//go:norace
func (m *M) exit(t *thread) {
	if r := recover(); r != nil {
		m.Failf("T%d panicked: %v", t.id, r)
	}
	m.returned.Add(1)
	raceOff()
	m.settle()
	t.finished = true
	if m.phase == launch {
		m.pass(nil)
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
