package breakerhttp

import "github.com/latchfree/latchfree/atomicbreaker"

// report tells a breaker how the call ended that it has admitted. It runs the
// listener, which may leave; the outcome is reported then.
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
