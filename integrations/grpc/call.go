package latchgrpc

import (
	"context"
	"sync/atomic"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A gate admits calls.
type gate interface {
	// enter returns a function that reports how the call ended, to be called once, or an
	// error that matches atomicbreaker.ErrRejected.
	enter(ctx context.Context, target, method string) (report func(atomicbreaker.Outcome), err error)

	// early reports whether a stream has succeeded with its first message.
	early() bool

	classify(ctx context.Context, err error) atomicbreaker.Outcome
}

// A call is one that a gate has admitted. Whoever sets ended reports how it ended.
type call struct {
	gate   gate
	ctx    context.Context
	report func(atomicbreaker.Outcome)
	ended  atomic.Bool
}

func begin(g gate, ctx context.Context, target, method string) (*call, error) {
	report, err := g.enter(ctx, target, method)
	if err != nil {
		return nil, &rejection{err}
	}
	return &call{gate: g, ctx: ctx, report: report}, nil
}

// end reports how the call ended, unless it was reported. It runs user code. If that does
// not return, the call has failed.
func (c *call) end(err error) {
	if c.ended.Load() || !c.ended.CompareAndSwap(false, true) {
		return
	}
	outcome := atomicbreaker.Failure
	defer func() { c.report(outcome) }()
	outcome = c.gate.classify(c.ctx, err)
}

// message says that a message came through a stream.
func (c *call) message() {
	if c.gate.early() {
		c.end(nil)
	}
}

// unwind reports a failure, unless the call was reported or goes on.
func (c *call) unwind(returned *bool) {
	if !*returned && c.ended.CompareAndSwap(false, true) {
		c.report(atomicbreaker.Failure)
	}
}
