//go:build modelcheck

package interleave

import (
	"fmt"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
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
	moments []Moment[S]
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
	Op, Got  string // which operation, and what it returned
	From, To Mark   // it lies between them
	Follows  int    // it comes after the moment for which Add returned this; 0: none

	// Explains does the operation on the model, and reports whether what it
	// returned is right at one of the times from From to To.
	Explains func(s S, ticks int) bool
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

// Add remembers a moment, and returns what Moment.Follows calls it.
func (c *Caller[R, S]) Add(m Moment[S]) int {
	c.moments = append(c.moments, m)
	return len(c.moments)
}

// Last returns the latest moment.
func (c *Caller[R, S]) Last() Moment[S] { return c.moments[len(c.moments)-1] }

// Once does an operation that takes effect once. It returns what want returns
// for the model, as package fmt prints it; so does one that panics or exits.
func (c *Caller[R, S]) Once(op string, do func() any, want func(s S, ticks int) any) {
	from, got := c.Begin(), any(Exits)
	defer func() {
		if p := recover(); p != nil {
			got = Panics(p)
		}
		text := fmt.Sprint(got)
		c.Add(Moment[S]{Op: op, Got: text, From: from, To: c.End(), Explains: func(s S, ticks int) bool {
			return fmt.Sprint(want(s, ticks)) == text
		}})
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
