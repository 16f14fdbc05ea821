package cowchangeset

import (
	"runtime"

	"github.com/latchfree/latchfree/internal/atomics"
)

// How long one operation waits for others that are about to finish, before it
// goes on without them. The window waited for is a copy of one entry and one
// atomic instruction. The loads cover it while its goroutine is running; the
// yields, while it is runnable on this processor. More would only delay the
// caller behind a goroutine that is not going to run soon.
//
// In the model, cuts look twice before they kill.
func spinLoads() int { return atomics.Limit(64, 1) }

func spinYields() int { return atomics.Limit(4, 0) }

// loadsPerEntry is for the entries of a batch: a load of a cached word is
// several times cheaper than a copy.
func loadsPerEntry() int { return atomics.Limit(4, 0) }

// spinWait counts the steps for which one operation has waited. They are for the whole
// operation, so that many stalled goroutines delay it no more than one.
type spinWait struct{ spent int }

// spin waits one step, and reports false without waiting if all steps are spent.
func (s *spinWait) spin() bool {
	if s.spent >= spinLoads()+spinYields() {
		return false
	}
	s.spent++
	if s.spent > spinLoads() {
		runtime.Gosched()
	}
	return true
}

// extend adds the time that copying a batch of k entries takes.
func (s *spinWait) extend(k uint64) { s.spent -= int(k) * loadsPerEntry() }
