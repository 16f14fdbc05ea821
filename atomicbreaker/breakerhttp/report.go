package breakerhttp

import "github.com/latchfree/latchfree/atomicbreaker"

// classified reports what classify says of a call, and a failure if that does not
// return. It runs user code.
func classified(p atomicbreaker.GroupPermit[string], classify func() atomicbreaker.Outcome) {
	returned := false
	defer func() {
		if !returned {
			p.Failure()
		}
	}()
	outcome := classify()
	returned = true
	p.Report(outcome)
}
