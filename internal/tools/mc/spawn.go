//go:build modelcheck

package mc

import (
	"errors"
	"fmt"
	"runtime"
)

// add makes a thread that has not been started yet.
//
//go:norace
func (m *M) add(fn func()) *thread {
	limit := 64 // of a set, and of digits
	if m.cfg.Mode == DPOR {
		limit = maxThreads
	}
	if len(m.threads) == limit {
		panic("mc: too many threads")
	}
	t := &thread{id: len(m.threads), fn: fn}
	m.threads = append(m.threads, t)
	if m.cfg.Mode == PCT {
		m.rank()
	}
	return t
}

// Go is the go statement of the code under test: in an execution the goroutine
// is one more thread. Up to its first step it runs at once.
//
//go:norace
func Go(fn func()) {
	m := active
	if m == nil {
		go fn()
		return
	}
	if m.phase == leaving {
		m.leave(m.cur)
	}
	if m.cfg.stall != nil && m.cur != nil {
		Step(&Op{Verb: "go"}) // a thread may be stopped before it starts another
	}
	if m.phase != running {
		m.launch(m.add(fn))
		return
	}
	t := m.add(fn)
	m.settle()
	m.branch(1, true) // nothing to choose, but each step has its place in the search
	m.trace = append(m.trace, step{thread: m.cur.id})
	if m.recording {
		m.notes = append(m.notes, note{text: fmt.Sprintf("go T%d", t.id), at: where()})
	}
	m.settle()
	m.inherit(t, m.cur)
	m.launch(t)
}

// inherit orders what t will do after what its parent has done.
//
//go:norace
func (m *M) inherit(t, parent *thread) {
	if m.cfg.Mode != DPOR || m.cfg.flaw == flawOrphan {
		return
	}
	c := &m.clocks[t.id]
	*c = m.clocks[parent.id]
	if m.cfg.flaw == flawElder {
		for i := range m.clocks {
			m.join(c, &m.clocks[i])
		}
	}
}

// launch starts t, and returns when t waits before its first step.
//
//go:norace
func (m *M) launch(t *thread) {
	t.parent = m.cur
	m.cur = t
	m.hire(t)
	if t.parent == nil {
		<-m.control
	} else {
		<-t.parent.wake
	}
}

// errStuck unwinds a body or a Final that waits for ever.
var errStuck = errors.New("mc: waits for ever")

// await lets the threads that were started before move until o, a step of the
// body or of Final, is enabled; nil: until they have returned. There is nothing
// to explore in that: what must be explored belongs in threads.
//
//go:norace
func (m *M) await(o *Op) {
	for last, steps := -1, 0; ; steps++ {
		set, left := m.enabled()
		if o != nil && o.enabled() || o == nil && !left {
			break
		}
		if set == 0 || steps == m.cfg.MaxSteps {
			m.fail("deadlock or livelock: the body, or Final, waits for ever")
			panic(errStuck)
		}
		last = next(set, last)
		m.pass(m.threads[last])
		<-m.control
	}
}

// next returns the member of a set that comes after last in turn.
//
//go:norace
func next(set uint64, last int) int {
	if higher := set >> (last + 1) << (last + 1); higher != 0 {
		return first(higher)
	}
	return first(set)
}

// guard runs the execution. A body or Final that waits for ever has failed.
func (m *M) guard(body func(*M)) {
	defer func() {
		r := recover()
		m.unwind()
		if r != nil && r != any(errStuck) {
			panic(r)
		}
	}()
	m.run(body)
}

// unwind ends the threads that a failure has left waiting, each where it
// waits, so that none is left behind. What their deferred functions do is not
// part of the execution, and in no race with it: all are met before one leaves.
func (m *M) unwind() {
	for _, m.phase = range [...]phase{meeting, leaving} {
		for _, t := range m.threads {
			if t.started && !t.finished {
				m.pass(t)
				<-m.control
				m.returned.Load()
			}
		}
	}
}

// leave ends the calling thread.
//
//go:norace
func (m *M) leave(t *thread) {
	if m.phase == meeting {
		m.returned.Add(1)
		m.pass(nil)
		<-t.wake
	}
	runtime.Goexit()
}
