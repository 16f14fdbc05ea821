//go:build modelcheck

package mc

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/goid"
)

// maxThreads bounds the threads of one body where all orders count: the length of a vector clock.
const maxThreads = 24

// M is what a body works with. It is valid for one execution of the body.
type M struct {
	search
	execution
}

// search is what outlives an execution.
type search struct {
	cfg       Config
	stack     []node // the choice points of the execution, depth first
	script    []byte // the choices to replay; nil: search
	recording bool   // describe steps: only when a failure is replayed
	random    random
	longest   int       // steps of the longest execution so far
	idle      []*worker // for the threads of the next execution
}

// execution is one run of the body. One goroutine at a time has the turn and
// touches it: the controller (the goroutine that called Explore) or a thread.
type execution struct {
	threads  []*thread
	final    func()
	control  chan struct{} // gives the turn to the controller
	returned atomic.Int32  // orders what threads did before what the controller does next
	phase    phase
	cur      *thread // who has the turn; nil: the controller

	free    bool // finish without branching: failed, or equivalent to another
	flaw    bool // the checker itself was misused: do not replay
	failure string
	steps   int
	picks   []byte // every choice made, which is what a replay needs
	calm    int    // steps since a free execution changed threads

	trace   []step
	settled int    // steps whose outcome was taken into account
	fresh   int    // first step that no earlier execution has analysed
	sleep   uint64 // threads whose next step leads to nothing new
	preempt int    // preemptions so far
	words   words
	clocks  [maxThreads]clock
	touched []touched // by word

	prio    []int // PCT
	changes []int // PCT
	tick    int64 // Begin and End
	elapsed int64 // the modelled clock
	alarms  []alarm
	names   map[unsafe.Pointer]string
	notes   []note // by step, while recording
}

type phase uint8

const (
	setup   phase = iota // the body runs, and then each thread up to its first step
	running              // threads take turns
	done                 // Final runs
	meeting              // see unwind
	leaving
)

// thread is one modelled goroutine.
type thread struct {
	id       int
	fn       func()
	*worker          // from its launch on
	parent   *thread // gets the turn back when it is started; nil: the controller
	next     pending // the step it will take once it has the turn
	verb     string  // of next
	at       string  // where next is in the source, while recording
	started  bool    // it has come to its first step
	finished bool
	returned bool   // so that its goroutine serves on
	drawn    uint64 // numbers that Draw has returned
	taken    int    // steps, while threads are stopped for ever
}

// Go adds a thread. It starts when the body has returned; up to its first step
// it runs alone.
func (m *M) Go(fn func()) {
	if m.phase != setup {
		panic("mc: Go outside the body")
	}
	m.add(fn)
}

// Final sets a function that runs when every thread has returned. It may read
// whatever the threads wrote.
func (m *M) Final(fn func()) { m.final = fn }

// Name calls the shared word that p points to by name in traces.
func (m *M) Name(name string, p any) {
	if m.phase != setup {
		panic("mc: Name outside the body")
	}
	addr := reflect.ValueOf(p).UnsafePointer()
	if w, ok := p.(interface{ ModelWord() unsafe.Pointer }); ok {
		addr = w.ModelWord()
	}
	if m.names == nil {
		m.names = map[unsafe.Pointer]string{}
	}
	m.names[addr] = name
}

// Failf reports that this execution is wrong. The first report counts.
//
//go:norace
func (m *M) Failf(format string, args ...any) {
	if m.failure == "" {
		m.fail(fmt.Sprintf(format, args...))
	}
}

// fail is Failf for use between raceOff and raceOn, where package fmt and its
// pool would look racy.
//
//go:norace
func (m *M) fail(text string) {
	if m.free = true; m.failure == "" {
		m.failure = text
	}
}

// Advance moves the modelled clock, which internal/atomics.Now reads, forward. With
// Config.Timed, it starts the timers that are due then.
//
//go:norace
func (m *M) Advance(d time.Duration) {
	mode := Commute
	if m.cfg.Timed {
		mode = Write
	}
	Step(&Op{Verb: "Advance", On: Access{unsafe.Pointer(&m.elapsed), mode}})
	m.elapsed += int64(d)
	Note(func() string { return fmt.Sprintf("Advance(%v)", d) })
	m.ring()
}

// epoch is what the modelled clock shows when an execution starts.
const epoch = 1_000_000_000

// Now returns the modelled time, and outside explorations the real one or that of a
// measurement.
//
//go:norace
func Now() time.Time {
	m := active
	if m == nil {
		if c := counter(); c != nil {
			c.add(Clock)
		}
		if c := measured; c != nil && c.by == goid.Token() {
			return c.read()
		}
		return time.Now()
	}
	Step(&Op{Verb: "Now", Class: Clock, On: Access{unsafe.Pointer(&m.elapsed), Read}})
	now := time.Unix(epoch, m.elapsed)
	Note(func() string { return fmt.Sprintf("Now() = start+%v", time.Duration(m.elapsed)) })
	return now
}

// Tally counts what happens in threads, for Final to look at. It is invisible:
// no step, and no ordering that the race detector could take for the code's
// own. Do not decide anything by it in a thread.
type Tally struct{ n int }

// Add adds n to the tally.
//
//go:norace
func (t *Tally) Add(n int) { t.n += n }

// Value returns the sum of what was added.
//
//go:norace
func (t *Tally) Value() int { return t.n }
