package latchgrpc

import (
	"context"
	"sync/atomic"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// A gate admits calls.
type gate interface {
	// enter returns an admission, to be reported once, or an error that matches
	// atomicbreaker.ErrRejected.
	enter(ctx context.Context, target, method string) (admission, error)

	// early reports whether a stream has succeeded with its first message.
	early() bool

	classify(ctx context.Context, err error) atomicbreaker.Outcome
}

// An admission knows where the end of a call is reported. It is no interface and no
// function, so that a unary call does not allocate it.
type admission struct {
	group    bool // keyed, and not permit
	permit   atomicbreaker.Permit
	keyed    atomicbreaker.GroupPermit[string]
	throttle *throttle.Throttle // nil: one of the others
}

func (a admission) report(o atomicbreaker.Outcome) {
	switch {
	case a.group:
		a.keyed.Report(o)
	case a.throttle == nil:
		a.permit.Report(o)
	case o == atomicbreaker.Success || o == atomicbreaker.Ignored:
		a.throttle.Success()
	}
}

// unary makes a call that ends when do returns. If do or the user's Classify does not
// return, the call has failed.
func unary(g gate, ctx context.Context, target, method string, do func() error) error {
	a, err := g.enter(ctx, target, method)
	if err != nil {
		return reject(err)
	}
	outcome := atomicbreaker.Failure
	defer func() { a.report(outcome) }()
	err = do()
	outcome = g.classify(ctx, err)
	return err
}

// A call is a stream that a gate has admitted. Whoever sets ended reports how it ended.
type call struct {
	admission
	gate  gate
	ctx   context.Context
	ended atomic.Bool
}

func begin(g gate, ctx context.Context, target, method string) (*call, error) {
	a, err := g.enter(ctx, target, method)
	if err != nil {
		return nil, reject(err)
	}
	return &call{admission: a, gate: g, ctx: ctx}, nil
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
