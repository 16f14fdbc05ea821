package cowchangeset

import (
	"math"
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

// bytesPerLoad is for an append whose alternative is to copy the array. It waits for a
// third of the time that the copy would take: 5 ns for 16 bytes, for which a copy with
// room takes 12 to 20. The owner may have met a page that is not there yet, or be
// copying the array itself.
func bytesPerLoad() int { return atomics.Limit(16, math.MaxInt) }

// spinWait counts the steps for which one operation has waited. They are for the whole
// operation, so that many stalled goroutines delay it no more than one.
type spinWait struct{ spent, lingered int }

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

// linger is spin for a caller that has spent all steps, and would copy so many bytes
// next. It yields again and again.
func (s *spinWait) linger(bytes uint64) bool {
	if uint64(s.lingered) >= bytes/uint64(bytesPerLoad()) {
		return false
	}
	s.lingered++
	if s.lingered%spinLoads() == 0 {
		runtime.Gosched()
	}
	return true
}

// extend adds the time that copying a batch of k entries takes.
func (s *spinWait) extend(k uint64) { s.spent -= int(k) * loadsPerEntry() }
