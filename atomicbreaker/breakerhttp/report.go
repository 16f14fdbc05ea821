package breakerhttp

import "github.com/latchfree/latchfree/atomicbreaker"

// classified reports what classify says of a call, and a failure if that does not
// return. It runs user code.
func classified(p atomicbreaker.Permit, classify func() atomicbreaker.Outcome) {
	returned := false
	defer func() {
		if !returned {
			p.Failure()
		}
	}()
	outcome := classify()
	returned = true
	report(p, outcome)
}

// report tells a breaker how a call that it has admitted ended. It runs the
// listener, which may not return; the outcome is reported then.
func report(p atomicbreaker.Permit, o atomicbreaker.Outcome) {
	switch o {
	case atomicbreaker.Success:
		p.Success()
	case atomicbreaker.Ignored:
		p.Cancel()
	default:
		p.Failure()
	}
}
