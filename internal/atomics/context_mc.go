//go:build modelcheck

package atomics

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// WaitContext is a step that is enabled once the event has fired or ctx has
// ended. If both have, which of the two it reports is a choice.
func (e *Event) WaitContext(ctx context.Context) error {
	o := e.op("WaitContext", mc.Blocking, mc.Read, true)
	c, ended := modelOf(ctx)
	if c != nil {
		o.Also, o.AlsoGate = mc.Access{Addr: c.ModelWord(), Mode: mc.Read}, &c.ended
	} else if ended {
		o.Blocks = false
	}
	mc.Step(&o)
	if !mc.Modelled() {
		select {
		case <-e.s.ch:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ended = ended || c != nil && mc.Get(&c.ended) == 1
	if ended && (mc.Get(&e.s.fired) == 0 || mc.Choose(2) == 1) {
		<-ctx.Done()
		if c != nil {
			ctx = c.Context
		}
		return ctx.Err()
	}
	<-e.s.ch
	return nil
}

// Go starts a modelled thread.
func Go(f func()) { mc.Go(f) }

// modelContext is a context whose end is a step, and another one for each
// context and function that depends on it, in any order.
type modelContext struct {
	context.Context // the real one, which ends in the same step
	end             context.CancelCauseFunc
	ended           int32 // the gate

	mu         sync.Mutex // a real one, for its edges, never waited for
	dependents []dependent
}

// dependent is what ends with a context.
type dependent interface{ cancel(cause error) }

// modelKey is what a modelContext is its own value for.
type modelKey struct{}

// modelOf returns the modelled context whose end is the end of ctx. If there is
// none, ctx never ends or has ended.
func modelOf(ctx context.Context) (c *modelContext, ended bool) {
	done := ctx.Done()
	if done == nil || !mc.Modelled() {
		return nil, false
	}
	if c, _ = ctx.Value(modelKey{}).(*modelContext); c != nil && c.Done() == done {
		return c, false
	}
	select {
	case <-done:
		return nil, true
	default:
		panic("atomics: a context that can end must be made by the seam to be modelled")
	}
}

// WithCancel is WithCancelCause without a cause.
func WithCancel(parent context.Context) (context.Context, context.CancelFunc) {
	if !mc.Modelled() {
		return context.WithCancel(parent)
	}
	ctx, cancel := WithCancelCause(parent)
	return ctx, func() { cancel(nil) }
}

// WithCancelCause is a step if parent is modelled: it begins to depend on it.
func WithCancelCause(parent context.Context) (context.Context, context.CancelCauseFunc) {
	p, ended := modelOf(parent)
	if ended || !mc.Modelled() {
		return context.WithCancelCause(parent)
	}
	c := new(modelContext)
	c.Context, c.end = context.WithCancelCause(context.WithoutCancel(parent))
	if p != nil && !p.add("WithCancel", c) {
		c.ended = 1
		c.end(context.Cause(p.Context))
	}
	return c, c.cancel
}

// AfterFunc is a step if ctx is modelled. So is the function that it returns.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) {
	c, ended := modelOf(ctx)
	if !mc.Modelled() {
		return context.AfterFunc(ctx, f)
	}
	a := &afterFunc{f: f}
	if ended || c != nil && !c.add("AfterFunc", a) {
		a.over = true
		mc.Go(f)
	}
	return a.stop
}

// ModelWord is the address by which the model knows the context.
//
// Safety: the address only names the word to the model.
func (c *modelContext) ModelWord() unsafe.Pointer { return unsafe.Pointer(c) }

func (c *modelContext) step(verb string, mode mc.Mode) {
	mc.Step(&mc.Op{Verb: verb, On: mc.Access{Addr: c.ModelWord(), Mode: mode}, Gate: &c.ended})
}

// add makes d depend on c, and fails if c has ended.
func (c *modelContext) add(verb string, d dependent) bool {
	c.step(verb, mc.Commute) // dependents cannot tell in which order they were added
	c.mu.Lock()
	defer c.mu.Unlock()
	if mc.Get(&c.ended) == 1 {
		return false
	}
	c.dependents = append(c.dependents, d)
	return true
}

// cancel is a step that writes, unless the context has ended, followed by the
// steps of its dependents.
func (c *modelContext) cancel(cause error) {
	c.step("cancel", mc.Write)
	c.mu.Lock()
	if mc.Get(&c.ended) == 1 {
		mc.Did(mc.Read, mc.None)
		c.mu.Unlock()
		return
	}
	mc.Set(&c.ended, 1)
	c.end(cause)
	left := c.dependents
	c.dependents = nil
	c.mu.Unlock()
	for n := len(left); n > 0; n-- {
		i := 0
		if n > 1 {
			i = mc.Choose(n)
		}
		d := left[i]
		left[i] = left[n-1]
		d.cancel(context.Cause(c.Context))
	}
}

// Err is a step that reads.
func (c *modelContext) Err() error {
	c.step("Err", mc.Read)
	err := c.Context.Err()
	mc.Note(func() string { return fmt.Sprintf("Err() = %v", err) })
	return err
}

// Value finds c itself, and what the real context finds.
func (c *modelContext) Value(key any) any {
	if key == (modelKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// afterFunc is a function that waits for the end of a context.
type afterFunc struct {
	f    func()
	mu   sync.Mutex // a real one, for its edges, never waited for
	over bool       // f was started or stopped
}

// settle is a step. It reports whether it was the first.
//
// Safety: the address only names the word to the model.
func (a *afterFunc) settle(verb string) bool {
	mc.Step(&mc.Op{Verb: verb, On: mc.Access{Addr: unsafe.Pointer(a), Mode: mc.Write}})
	a.mu.Lock()
	defer a.mu.Unlock()
	over := a.over
	if a.over = true; over {
		mc.Did(mc.Read, mc.None)
	}
	mc.Note(func() string { return fmt.Sprintf("%s() = %v", verb, !over) })
	return !over
}

func (a *afterFunc) stop() bool { return a.settle("stop") }

func (a *afterFunc) cancel(error) {
	if a.settle("AfterFunc") {
		mc.Go(a.f)
	}
}
