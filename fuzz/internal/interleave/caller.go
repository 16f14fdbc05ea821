//go:build modelcheck

package interleave

import (
	"fmt"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Op is one operation on a real value R, which is compared with a model S.
type Op[R, S any] struct {
	Name string
	Do   func(*Caller[R, S])
}

// Caller is a thread in one execution: it does its operations, and remembers at
// which moments they took effect.
type Caller[R, S any] struct {
	Real   R
	Thread int // 0 is the prelude, and what comes after the threads

	m       *mc.M
	clock   *clock
	moments []*Moment[S]
	forks   []*Caller[R, S]
}

// clock counts how often time has passed in an execution.
type clock struct {
	ticks mc.Tally
	tick  time.Duration
}

// Mark is a place in an execution.
type Mark struct {
	At    int64 // more for later ones
	Ticks int   // of the clock
}

// Moment is a moment at which an operation takes effect.
type Moment[S any] struct {
	Op, Got  string     // which operation, and what it returned
	From, To Mark       // it lies between them; without To, before the threads are done
	Follows  *Moment[S] // it comes after that one; nil: after none

	// Explains does the operation on the model, and reports whether what it
	// returned is right. If there are several Ways to do it, each is tried.
	Explains func(s S, way int) bool
	Ways     int // 0: one

	// Settle completes the moment when the threads are done. It may be nil;
	// false means that there was no such moment.
	Settle func(*Moment[S]) bool
}

// AtSomeTime explains m as of any time that the clock showed between From and
// To, and returns m.
func (m *Moment[S]) AtSomeTime(explains func(s S, ticks int) bool) *Moment[S] {
	m.Ways = m.To.Ticks - m.From.Ticks + 1
	m.Explains = func(s S, way int) bool { return explains(s, m.From.Ticks+way) }
	return m
}

// Begin marks where an operation, or a part of one, begins.
func (c *Caller[R, S]) Begin() Mark { return Mark{c.m.Begin(), c.clock.ticks.Value()} }

// End marks where an operation, or a part of one, ends.
func (c *Caller[R, S]) End() Mark { return Mark{c.m.End(), c.clock.ticks.Value()} }

// Tick lets time pass, by Program.Tick.
func (c *Caller[R, S]) Tick() {
	c.m.Advance(c.clock.tick)
	c.clock.ticks.Add(1)
}

// Add remembers a moment.
func (c *Caller[R, S]) Add(m *Moment[S]) *Moment[S] {
	c.moments = append(c.moments, m)
	return m
}

// Last returns the latest moment.
func (c *Caller[R, S]) Last() *Moment[S] { return c.moments[len(c.moments)-1] }

// Fork returns a caller for what an operation of this one does on another
// goroutine.
func (c *Caller[R, S]) Fork() *Caller[R, S] {
	f := &Caller[R, S]{Real: c.Real, Thread: c.Thread, m: c.m, clock: c.clock}
	c.forks = append(c.forks, f)
	return f
}

// all returns the moments of c and of its forks.
func (c *Caller[R, S]) all() []*Moment[S] {
	moments := c.moments
	for _, f := range c.forks {
		moments = append(moments, f.all()...)
	}
	return moments
}

// Once does an operation that takes effect once. It returns what want returns
// for the model, as package fmt prints it; so does one that panics or exits.
func (c *Caller[R, S]) Once(op string, do func() any, want func(s S, ticks int) any) {
	from, got := c.Begin(), any(Exits)
	defer func() {
		if p := recover(); p != nil {
			got = Panics(p)
		}
		m, text := &Moment[S]{Op: op, Got: fmt.Sprint(got), From: from, To: c.End()}, fmt.Sprint(got)
		c.Add(m.AtSomeTime(func(s S, ticks int) bool { return fmt.Sprint(want(s, ticks)) == text }))
	}()
	got = do()
}

// Exits is the result of an operation that calls runtime.Goexit.
const Exits = "exits"

// Panics is the result of an operation that panics with v.
func Panics(v any) string { return fmt.Sprint("panics: ", v) }

// do does operations one after the other, whatever becomes of those before:
// after a call of runtime.Goexit it goes on as a deferred function.
func (c *Caller[R, S]) do(ops []Op[R, S]) {
	if len(ops) == 0 {
		return
	}
	defer c.do(ops[1:])
	ops[0].Do(c)
}

// alone does operations on a goroutine of its own, which they may end. Nobody
// else is running, and none of it is a step.
func (c *Caller[R, S]) alone(ops []Op[R, S]) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.do(ops)
	}()
	<-done
}
