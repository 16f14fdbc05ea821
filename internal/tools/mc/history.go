//go:build modelcheck

package mc

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// Begin and End bracket an operation whose place in real time matters, and
// return times: operation a was over before operation b began if a's End is
// less than b's Begin. They are steps. Two Begins commute and so do two Ends,
// because only the order of an End and a Begin says anything.
//
//go:norace
func (m *M) Begin() int64 { return m.mark("begin", "", Read) }

// End is the counterpart of Begin.
//
//go:norace
func (m *M) End() int64 { return m.mark("end", "", Commute) }

//go:norace
func (m *M) mark(verb, operation string, mode Mode) int64 {
	Step(&Op{Verb: verb, On: Access{unsafe.Pointer(&m.tick), mode}})
	m.tick++
	Note(func() string { return strings.TrimSpace(verb + " " + operation) })
	return m.tick
}

// Program is a small concurrent program on one shared value. T is usually an
// interface that the implementation and its sequential model both satisfy.
type Program[T any] struct {
	New     func() T // the implementation, fresh
	Model   func() T // what it should behave like, fresh, for one goroutine
	Threads [][]Call[T]
	After   []Call[T] // run one after the other when the threads are done
}

// Call is one operation. Its results are compared as package fmt prints them;
// a panic counts as a result.
type Call[T any] struct {
	Name string
	Do   func(T) any
}

// Linearizable checks that in every execution that cfg asks for, the results
// of the program's operations are those of some sequential order on the
// model, in which an operation that ended before another began comes first.
func Linearizable[T any](t testing.TB, cfg Config, p Program[T]) Result {
	t.Helper()
	cfg.Operations = p.operations()
	return Check(t, cfg, p.body())
}

// NotLinearizable is Refute for a program that must not be linearizable.
func NotLinearizable[T any](t testing.TB, cfg Config, p Program[T]) Result {
	t.Helper()
	cfg.Operations = p.operations()
	return Refute(t, cfg, notLinearizable, p.body())
}

const notLinearizable = "not linearizable"

// Body is what Linearizable explores, for Sample.
func (p *Program[T]) Body() func(*M) { return p.body() }

func (p *Program[T]) operations() string {
	return Listed(p.Threads, func(c Call[T]) string { return c.Name })
}

// Listed prints what threads do, for Config.Operations.
func Listed[O any](threads [][]O, name func(O) string) string {
	var b strings.Builder
	for i, operations := range threads {
		if i > 0 {
			b.WriteString(" ∥ ")
		}
		for j, o := range operations {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(name(o))
		}
	}
	return b.String()
}

// event is a Call that took place.
type event struct {
	call       int // index into the thread's calls
	begin, end int64
	result     any
}

func (p *Program[T]) body() func(*M) {
	verdicts := map[string]bool{} // of the histories seen so far
	return func(m *M) {
		shared := p.New()
		history := make([][]event, len(p.Threads)+1)
		for i, calls := range p.Threads {
			history[i] = make([]event, 0, len(calls))
			m.Go(func() {
				for j, c := range calls {
					e := event{call: j, begin: m.mark("begin", c.Name, Read)}
					e.result = c.run(shared)
					e.end = m.mark("end", c.Name, Commute)
					history[i] = append(history[i], e)
				}
			})
		}
		m.Final(func() {
			for i, calls := range p.Threads {
				if n := len(history[i]); n < len(calls) {
					m.Failf("T%d: %s ended by runtime.Goexit, which is no result to judge", i, calls[n].Name)
					return
				}
			}
			for j, c := range p.After {
				m.tick++
				history[len(p.Threads)] = append(history[len(p.Threads)], event{j, m.tick, m.tick, c.run(shared)})
			}
			h := printed(history)
			key := h.key()
			ok, seen := verdicts[key]
			if !seen {
				ok = p.explains(h, make([]int, len(history)), nil)
				verdicts[key] = ok
			}
			if !ok {
				m.Failf(notLinearizable+": no sequential order explains\n%s", p.print(h))
			}
		})
	}
}

// run returns what the call returns, or its panic.
func (c Call[T]) run(shared T) (result any) {
	defer func() {
		if r := recover(); r != nil {
			result = fmt.Sprintf("panic: %v", r)
		}
	}()
	return c.Do(shared)
}

// history is an execution's events by thread, with the results printed.
type history struct {
	events  [][]event
	results [][]string
}

func (p *Program[T]) calls(thread int) []Call[T] {
	if thread < len(p.Threads) {
		return p.Threads[thread]
	}
	return p.After
}

func printed(events [][]event) *history {
	h := &history{events: events, results: make([][]string, len(events))}
	for i, es := range events {
		for _, e := range es {
			h.results[i] = append(h.results[i], fmt.Sprint(e.result))
		}
	}
	return h
}

// key is equal for histories with the same verdict: those with the same results
// in which the same events were over before each began.
func (h *history) key() string {
	var key []byte
	for i, es := range h.events {
		for j, e := range es {
			key = strconv.AppendQuote(key, h.results[i][j])
			for _, others := range h.events {
				before := 0
				for _, o := range others {
					if o.end < e.begin {
						before++
					}
				}
				key = strconv.AppendInt(append(key, ' '), int64(before), 10)
			}
		}
		key = append(key, '\n')
	}
	return string(key)
}

func (p *Program[T]) print(h *history) string {
	var lines []string
	for i, es := range h.events {
		for j, e := range es {
			lines = append(lines, fmt.Sprintf("\tT%d [%d, %d] %s = %s", i, e.begin, e.end, p.calls(i)[e.call].Name, h.results[i][j]))
		}
	}
	return strings.Join(lines, "\n")
}

// explains reports whether order, a sequence of threads whose next events
// come next, can be completed so that the model gives every result. Done
// counts the events of each thread in order.
func (p *Program[T]) explains(h *history, done []int, order []int) bool {
	if len(order) > 0 && !p.agrees(h, order) {
		return false
	}
	complete := true
	for i, es := range h.events {
		if done[i] == len(es) {
			continue
		}
		complete = false
		if !h.mayComeNext(done, es[done[i]]) {
			continue
		}
		done[i]++
		if p.explains(h, done, append(order, i)) {
			return true
		}
		done[i]--
	}
	return complete
}

// mayComeNext reports whether no event that is still to come ended before e
// began.
func (h *history) mayComeNext(done []int, e event) bool {
	for i, es := range h.events {
		if done[i] < len(es) && es[done[i]].end < e.begin {
			return false
		}
	}
	return true
}

// agrees runs order on a fresh model and compares the last result: those
// before were compared when the order was shorter.
func (p *Program[T]) agrees(h *history, order []int) bool {
	model := p.Model()
	next := make([]int, len(h.events))
	var got any
	for _, i := range order {
		got = p.calls(i)[h.events[i][next[i]].call].run(model)
		next[i]++
	}
	last := order[len(order)-1]
	return fmt.Sprint(got) == h.results[last][next[last]-1]
}
